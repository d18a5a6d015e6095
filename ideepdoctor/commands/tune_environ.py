"""The environment that programs have under a setting of tune."""

from __future__ import annotations

from collections.abc import Mapping

from ideepdoctor.model.facts import Facts
from ideepdoctor.proof.tune_space import Setting, most_threads
from ideepdoctor.rules.installed import set_by_user
from ideepdoctor.treatment.variables import defaults


class TunedEnviron:
    """What programs see under a setting: every variable that tune may touch has a value, so that neither a start-up
    file nor an older profile decides."""

    _NEUTRAL: Mapping[str, str] = {"KMP_AFFINITY": "none", "KMP_BLOCKTIME": "200"}

    def __init__(self, environ: Mapping[str, str], facts: Facts) -> None:
        profile = facts.profile
        held = [item.name for item in profile.variables if not item.early] if profile is not None else []
        neutral = {**self._NEUTRAL, "OMP_NUM_THREADS": str(most_threads(facts))}
        names = {name: neutral.get(name, "") for name in held}
        names |= {item.name: item.value for item in defaults(facts)}
        self._environ = environ
        self._base = {name: value for name, value in names.items() if not set_by_user(facts, name)}

    def variables(self, setting: Setting) -> Mapping[str, str]:
        """What is set besides the user's own."""
        return {**self._base, **setting.variables}

    def whole(self, setting: Setting) -> dict[str, str]:
        """The whole environment."""
        return {**self._environ, **self.variables(setting)}
