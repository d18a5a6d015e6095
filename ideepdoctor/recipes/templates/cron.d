# Made by: ideepdoctor recipe cron
# To /etc/cron.d/ideep-drift (no dot in that name). Mail comes only when something changed; cron mails what is printed.
SHELL=/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
MAILTO=root
IDEEP_ENV=/opt/ideep
# Another user than root is enough: one who can read the environment and write to IDEEP_DRIFT_STATE.
IDEEP_DRIFT_STATE=/var/lib/ideep-drift
17 5 * * * root /usr/local/sbin/ideep-drift
