"""The registry: every rule, each after those that it requires."""

from __future__ import annotations

from ideepdoctor.rules.base import Rule
from ideepdoctor.rules.idp101 import IDP101
from ideepdoctor.rules.idp102 import IDP102
from ideepdoctor.rules.idp103 import IDP103
from ideepdoctor.rules.idp110 import IDP110
from ideepdoctor.rules.idp111 import IDP111
from ideepdoctor.rules.idp112 import IDP112
from ideepdoctor.rules.idp113 import IDP113
from ideepdoctor.rules.idp114 import IDP114
from ideepdoctor.rules.idp115 import IDP115
from ideepdoctor.rules.idp116 import IDP116
from ideepdoctor.rules.idp117 import IDP117
from ideepdoctor.rules.idp201 import IDP201
from ideepdoctor.rules.idp202 import IDP202
from ideepdoctor.rules.idp203 import IDP203
from ideepdoctor.rules.idp204 import IDP204
from ideepdoctor.rules.idp205 import IDP205
from ideepdoctor.rules.idp206 import IDP206
from ideepdoctor.rules.idp301 import IDP301
from ideepdoctor.rules.idp302 import IDP302
from ideepdoctor.rules.idp303 import IDP303
from ideepdoctor.rules.idp304 import IDP304
from ideepdoctor.rules.idp305 import IDP305
from ideepdoctor.rules.idp306 import IDP306
from ideepdoctor.rules.idp307 import IDP307
from ideepdoctor.rules.idp308 import IDP308
from ideepdoctor.rules.idp309 import IDP309
from ideepdoctor.rules.idp310 import IDP310
from ideepdoctor.rules.idp311 import IDP311
from ideepdoctor.rules.idp312 import IDP312
from ideepdoctor.rules.idp313 import IDP313
from ideepdoctor.rules.idp314 import IDP314
from ideepdoctor.rules.idp315 import IDP315
from ideepdoctor.rules.idp316 import IDP316
from ideepdoctor.rules.idp317 import IDP317
from ideepdoctor.rules.idp318 import IDP318
from ideepdoctor.rules.idp319 import IDP319
from ideepdoctor.rules.idp320 import IDP320
from ideepdoctor.rules.idp321 import IDP321
from ideepdoctor.rules.idp401 import IDP401
from ideepdoctor.rules.idp402 import IDP402
from ideepdoctor.rules.idp403 import IDP403
from ideepdoctor.rules.idp404 import IDP404
from ideepdoctor.rules.idp405 import IDP405
from ideepdoctor.rules.idp406 import IDP406
from ideepdoctor.rules.idp407 import IDP407
from ideepdoctor.rules.idp408 import IDP408
from ideepdoctor.rules.idp409 import IDP409
from ideepdoctor.rules.idp410 import IDP410
from ideepdoctor.rules.idp411 import IDP411
from ideepdoctor.rules.idp501 import IDP501
from ideepdoctor.rules.idp502 import IDP502
from ideepdoctor.rules.idp503 import IDP503
from ideepdoctor.rules.idp504 import IDP504
from ideepdoctor.rules.idp505 import IDP505
from ideepdoctor.rules.idp506 import IDP506
from ideepdoctor.rules.idp507 import IDP507
from ideepdoctor.rules.idp508 import IDP508
from ideepdoctor.rules.idp509 import IDP509
from ideepdoctor.rules.idp601 import IDP601
from ideepdoctor.rules.idp602 import IDP602
from ideepdoctor.rules.idp603 import IDP603
from ideepdoctor.rules.idp604 import IDP604
from ideepdoctor.rules.idp605 import IDP605
from ideepdoctor.rules.idp606 import IDP606
from ideepdoctor.rules.idp607 import IDP607
from ideepdoctor.rules.idp608 import IDP608
from ideepdoctor.rules.idp609 import IDP609
from ideepdoctor.rules.idp610 import IDP610
from ideepdoctor.rules.idp611 import IDP611
from ideepdoctor.rules.idp612 import IDP612
from ideepdoctor.rules.idp613 import IDP613
from ideepdoctor.rules.idp614 import IDP614
from ideepdoctor.rules.idp615 import IDP615
from ideepdoctor.rules.idp616 import IDP616
from ideepdoctor.rules.idp617 import IDP617
from ideepdoctor.rules.idp618 import IDP618
from ideepdoctor.rules.idp619 import IDP619
from ideepdoctor.rules.idp620 import IDP620
from ideepdoctor.rules.idp621 import IDP621
from ideepdoctor.rules.idp622 import IDP622
from ideepdoctor.rules.idp701 import IDP701
from ideepdoctor.rules.idp702 import IDP702
from ideepdoctor.rules.idp703 import IDP703
from ideepdoctor.rules.idp704 import IDP704
from ideepdoctor.rules.idp705 import IDP705
from ideepdoctor.rules.idp706 import IDP706
from ideepdoctor.rules.idp707 import IDP707
from ideepdoctor.rules.idp709 import IDP709
from ideepdoctor.rules.idp801 import IDP801
from ideepdoctor.rules.idp802 import IDP802
from ideepdoctor.rules.idp803 import IDP803
from ideepdoctor.rules.idp804 import IDP804
from ideepdoctor.rules.idp805 import IDP805
from ideepdoctor.rules.idp806 import IDP806
from ideepdoctor.rules.idp807 import IDP807
from ideepdoctor.rules.idp808 import IDP808
from ideepdoctor.rules.idp809 import IDP809
from ideepdoctor.rules.idp810 import IDP810
from ideepdoctor.rules.idp811 import IDP811
from ideepdoctor.rules.idp812 import IDP812
from ideepdoctor.rules.idp813 import IDP813
from ideepdoctor.rules.idp814 import IDP814
from ideepdoctor.rules.idp815 import IDP815
from ideepdoctor.rules.idp816 import IDP816
from ideepdoctor.rules.idp817 import IDP817
from ideepdoctor.rules.idp818 import IDP818
from ideepdoctor.rules.idp819 import IDP819
from ideepdoctor.rules.idp820 import IDP820
from ideepdoctor.rules.idp821 import IDP821
from ideepdoctor.rules.idp822 import IDP822
from ideepdoctor.rules.idp823 import IDP823
from ideepdoctor.rules.idp824 import IDP824

BUILD_RULES: tuple[type[Rule], ...] = (
    IDP801,
    IDP802,
    IDP803,
    IDP804,
    IDP805,
    IDP806,
    IDP807,
    IDP808,
    IDP809,
    IDP810,
    IDP811,
    IDP812,
    IDP813,
    IDP814,
    IDP815,
    IDP816,
    IDP817,
    IDP818,
    IDP819,
    IDP821,
    IDP822,
    IDP823,
)
"""Those about a build from source: what it needs before it starts, and what its log says."""

RULES: tuple[type[Rule], ...] = (
    IDP101,
    IDP102,
    IDP103,
    IDP110,
    IDP111,
    IDP112,
    IDP113,
    IDP114,
    IDP115,
    IDP116,
    IDP117,
    IDP707,
    IDP201,
    IDP202,
    IDP203,
    IDP204,
    IDP205,
    IDP206,
    IDP301,
    IDP315,
    IDP302,
    IDP401,
    IDP402,
    IDP403,
    IDP405,
    IDP406,
    IDP404,
    IDP407,
    IDP408,
    IDP409,
    IDP410,
    IDP308,
    IDP303,
    IDP304,
    IDP305,
    IDP411,
    IDP306,
    IDP307,
    IDP317,
    IDP318,
    IDP309,
    IDP314,
    IDP310,
    IDP311,
    IDP316,
    IDP319,
    IDP313,
    IDP320,
    IDP321,
    IDP312,
    IDP501,
    IDP502,
    IDP503,
    IDP504,
    IDP505,
    IDP506,
    IDP507,
    IDP508,
    IDP509,
    IDP601,
    IDP602,
    IDP603,
    IDP604,
    IDP605,
    IDP606,
    IDP607,
    IDP608,
    IDP609,
    IDP610,
    IDP611,
    IDP612,
    IDP613,
    IDP614,
    IDP615,
    IDP616,
    IDP617,
    IDP618,
    IDP619,
    IDP620,
    IDP621,
    IDP622,
    IDP701,
    IDP702,
    IDP703,
    IDP704,
    IDP705,
    IDP706,
    IDP709,
    IDP820,
    IDP824,
    *BUILD_RULES,
)
