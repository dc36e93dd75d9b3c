#!/bin/sh
# In slurm.conf of all nodes: Epilog=/etc/slurm/courier_epilog.sh
#
# A job that Slurm killed (time limit, out of memory) could not say that it ended,
# and counts as load until it has been silent for half a minute. This says so at once.
# It runs as root on each node of the job, once all processes of the job have ended;
# a job that has said its end itself stays as it is.
#
# It ends with 0 whatever comes, because Slurm takes a node away whose epilog fails,
# and within seconds, because the node waits for it.
PATH=/usr/local/bin:/usr/bin:/bin
export PATH
settings=/etc/courier/client.env
if [ -r "$settings" ]; then
  set -a
  . "$settings"
  set +a
fi
[ -n "${SLURM_JOB_ID:-}" ] || exit 0

# As job.sbatch and nodes.sbatch name it: one for each time that Slurm started it.
start=0
while timeout 5 courier status "slurm-$SLURM_JOB_ID-$start" >/dev/null 2>&1; do
  timeout 5 courier cancel "slurm-$SLURM_JOB_ID-$start" --reason='Slurm has ended the job' >/dev/null 2>&1
  start=$((start + 1))
done
exit 0
