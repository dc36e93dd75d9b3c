#!/bin/sh
# In slurm.conf of all nodes: Epilog=/etc/slurm/courier_epilog.sh
#
# A job that Slurm killed (time limit, out of memory) cannot report its end, and counts as
# load until its events have been absent for half a minute. This script reports the end at
# once. It runs as root on each node of the job, after all processes of the job have ended.
# A job that has reported its end is not changed.
#
# With COURIER_SLURM_COMMENT=1 in /etc/courier/client.env it also stores the receipt of the
# job in its comment, for sacct -o jobid,comment%200: in slurm.conf,
# AccountingStoreFlags=job_comment.
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

# is_known reports whether a job exists. The status of one that missed its SLO has exit code 5.
is_known() {
  timeout 5 courier status "$1" >/dev/null 2>&1
  case $? in 0 | 5) return 0 ;; esac
  return 1
}

# The job ID of job.sbatch and nodes.sbatch: one for each start by Slurm.
start=0
while is_known "slurm-$SLURM_JOB_ID-$start"; do
  timeout 5 courier cancel "slurm-$SLURM_JOB_ID-$start" --reason='Slurm has ended the job' >/dev/null 2>&1
  last="slurm-$SLURM_JOB_ID-$start"
  start=$((start + 1))
done

if [ -n "${COURIER_SLURM_COMMENT:-}" ] && [ -n "${last:-}" ]; then
  receipt=$(timeout 5 courier receipt "$last" 2>/dev/null | tr -s ' ' | paste -sd ';' - | cut -c 1-1000)
  [ -z "$receipt" ] || timeout 5 sacctmgr -i modify job where "jobid=$SLURM_JOB_ID" set "comment=$receipt" >/dev/null 2>&1
fi
exit 0
