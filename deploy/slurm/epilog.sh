#!/bin/sh
# In slurm.conf of all nodes: Epilog=/etc/slurm/courier_epilog.sh
#
# A job that Slurm killed (time limit, out of memory) cannot report its end, and counts as
# load until its events have been absent for half a minute. This script reports the end at
# once. It runs as root on each node of the job, after all processes of the job have ended.
# A job that has reported its end is not changed.
#
# The script always exits with 0, because Slurm drains a node whose epilog fails, and
# within seconds, because the node waits for it.
PATH=/usr/local/bin:/usr/bin:/bin
export PATH
settings=/etc/courier/client.env
if [ -r "$settings" ]; then
  set -a
  . "$settings"
  set +a
fi
[ -n "${SLURM_JOB_ID:-}" ] || exit 0

# The job ID of job.sbatch and nodes.sbatch: one for each start by Slurm.
start=0
while timeout 5 courier status "slurm-$SLURM_JOB_ID-$start" >/dev/null 2>&1; do
  timeout 5 courier cancel "slurm-$SLURM_JOB_ID-$start" --reason='Slurm has ended the job' >/dev/null 2>&1
  start=$((start + 1))
done
exit 0
