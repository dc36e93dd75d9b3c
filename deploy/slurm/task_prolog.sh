#!/bin/sh
# In slurm.conf of all nodes: TaskProlog=/etc/slurm/courier_task_prolog.sh
#
# Sets the variables of /etc/courier/client.env for every task, so that job scripts do not
# contain the address of NATS:
#
#   COURIER_NATS_URL=nats://nats-1:4222,nats://nats-2:4222,nats://nats-3:4222
#
# Slurm adds the lines "export NAME=VALUE" of the output to the environment of the task.
# Variables that the user has set are kept.
settings=/etc/courier/client.env
[ -r "$settings" ] || exit 0
while IFS='=' read -r name value; do
  case $name in
    COURIER_*) [ -n "$(printenv "$name")" ] || printf 'export %s=%s\n' "$name" "$value" ;;
  esac
done <"$settings"
exit 0
