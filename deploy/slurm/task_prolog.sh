#!/bin/sh
# In slurm.conf of all nodes: TaskProlog=/etc/slurm/courier_task_prolog.sh
#
# Gives every task the cluster's settings, so that a job script need not know where
# NATS is: the lines of /etc/courier/client.env, such as
#
#   COURIER_NATS_URL=nats://nats-1:4222,nats://nats-2:4222,nats://nats-3:4222
#
# Slurm sets what this prints as "export NAME=VALUE" in the task's environment. What
# the user has set already stays.
settings=/etc/courier/client.env
[ -r "$settings" ] || exit 0
while IFS='=' read -r name value; do
  case $name in
    COURIER_*) [ -n "$(printenv "$name")" ] || printf 'export %s=%s\n' "$name" "$value" ;;
  esac
done <"$settings"
exit 0
