#!/usr/bin/env bash
# Prepares a secured cluster without containers: keys and certificates, configurations with the right
# paths, and units of systemd. OUT/HOST has the files of each machine at their places, and the end of
# the output says what to copy where. Keys that exist are kept, so a second run can add a node or a
# person. See docs/howto/secure-a-cluster.md.
#
#   deploy/secure.sh --out cluster --nats n1,n2,n3 --clickhouse db --services s1 --nodes g1,g2 --persons ada,bob
#
# --nats takes one host, or at least three. --courier is the program (default: courier in the PATH).
set -euo pipefail
umask 077
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out='' nats='' clickhouse='' services='' nodes='' persons='' courier=courier
usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --out | --nats | --clickhouse | --services | --nodes | --persons | --courier)
      [ $# -gt 1 ] || usage
      printf -v "${1#--}" %s "$2"
      shift 2
      ;;
    *) usage ;;
  esac
done
[ -n "$out" ] && [ -n "$nats" ] && [ -n "$services" ] || usage
IFS=, read -ra servers <<<"$nats"
[ ${#servers[@]} -ne 2 ] || { echo "secure.sh: --nats: two servers have no majority without each other: want one, or at least three" >&2; exit 2; }
for host in ${nats//,/ } ${clickhouse//,/ } ${services//,/ } ${nodes//,/ }; do
  [[ $host =~ ^[A-Za-z0-9.-]+$ ]] || { echo "secure.sh: $host is not the name of a host" >&2; exit 2; }
done

# The second call is for the files that a new person changes, which the first one writes as NAME.new.
keys=$out/keys
certs() {
  "$courier" certs --out "$keys" --rights "$here/nats/users.conf" --containers ${persons:+--person "$persons"} \
    --host "$nats,$services${clickhouse:+,$clickhouse}" >/dev/null
}
certs
for file in "$keys"/*.new; do
  [ ! -e "$file" ] || mv "$file" "${file%.new}"
done
certs

# give HOST ROLE copies the keys of a role to its folder on a machine.
give() {
  local to=$out/$1/etc/courier/tls/$2
  mkdir -p "$to"
  cp "$keys/containers/$2"/* "$to"
  chmod 0600 "$to"/*
}

# Each NATS server has the configuration of the containers, with its own name, folders and routes.
routes=$(printf 'nats://%s:6222, ' "${servers[@]}")
for host in "${servers[@]}"; do
  to=$out/$host/etc/courier/nats
  mkdir -p "$to" "$out/$host/etc/systemd/system"
  give "$host" nats
  for file in nats.conf cluster.conf tls.conf secure.conf; do
    sed -e "s|\$COURIER_NATS_NAME|$host|; s|/etc/courier/tls/|/etc/courier/tls/nats/|; s|\.\./tls/|../tls/nats/|" \
      -e "s|store_dir: /data|store_dir: /var/lib/courier-nats|; s|^routes: .*|routes: [${routes%, }]|" \
      -e '1,/^$/{/^#/d}' "$here/nats/$file" >"$to/$file"
    [ ${#servers[@]} -gt 1 ] || sed -i '/^cluster {/,/^}/d' "$to/$file"
  done
  cat >"$out/$host/etc/systemd/system/courier-nats.service" <<'UNIT'
[Unit]
Description=NATS server of Courier
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/local/bin/nats-server --config /etc/courier/nats/secure.conf
ExecReload=/bin/kill -HUP $MAINPID
User=courier-nats
StateDirectory=courier-nats
UMask=0077
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
Restart=always
RestartSec=2s
KillSignal=SIGUSR2
TimeoutStopSec=40s
LimitNOFILE=65536

[Install]
WantedBy=multi-user.target
UNIT
done

for host in ${clickhouse//,/ }; do
  to=$out/$host/etc/clickhouse-server
  mkdir -p "$to/config.d" "$to/users.d"
  give "$host" clickhouse
  cp "$here/clickhouse/config.xml" "$to/config.d/courier.xml"
  sed 's|/etc/courier/tls/|/etc/courier/tls/clickhouse/|' "$here/clickhouse/tls.xml" >"$to/config.d/courier-tls.xml"
  # The passwords are those of passwords.xml, which is read last.
  sed 's|<password from_env="[A-Z_]*"/>|<password/>|' "$here/clickhouse/users.xml" >"$to/users.d/courier.xml"
  cp "$here/clickhouse/trainer.xml" "$to/users.d/courier-trainer.xml"
  cp "$keys/containers/clickhouse/passwords.xml" "$to/users.d/z-passwords.xml"
done

# service HOST NAME [VARIABLE=VALUE...] writes the unit of a service with its keys, which systemd passes on
# to it, and variables. %d is the directory of the keys.
service() {
  local host=$1 name=$2 unit=$out/$1/etc/systemd/system/courier-$2.service file
  shift 2
  give "$host" "$name"
  mkdir -p "$unit.d"
  cp "$here/systemd/courier-$name.service" "$unit"
  {
    echo '[Service]'
    for file in "$out/$host/etc/courier/tls/$name"/*; do
      echo "LoadCredential=${file##*/}:${file#"$out/$host"}"
    done
    printf 'Environment=%s\n' "COURIER_NATS_URL=nats://${nats//,/:4222,nats://}:4222" COURIER_NATS_CA=%d/ca.crt \
      "COURIER_NATS_NKEY=%d/$name.nk" "$@"
  } >"$unit.d/secure.conf"
}

replicas=$((${#servers[@]} > 1 ? 3 : 1))
for host in ${services//,/ }; do
  service "$host" advisor "COURIER_NATS_REPLICAS=$replicas"
  database=()
  if [ -n "$clickhouse" ]; then
    address=${clickhouse%%,*}:9440/courier
    database=(COURIER_CLICKHOUSE_CA=%d/ca.crt)
    service "$host" store "COURIER_CLICKHOUSE_URL=clickhouse://courier@$address" \
      COURIER_CLICKHOUSE_PASSWORD_FILE=%d/courier.password "${database[@]}"
    database+=("COURIER_CLICKHOUSE_URL=clickhouse://trainer@$address" COURIER_CLICKHOUSE_PASSWORD_FILE=%d/trainer.password)
  fi
  service "$host" trainer "${database[@]}"
  service "$host" gateway COURIER_HTTP_ADDRESS=:8080 COURIER_TOKENS=%d/tokens COURIER_TLS_CERT=%d/gateway.crt \
    COURIER_TLS_KEY=%d/gateway.key
done
for host in ${nodes//,/ }; do service "$host" collector; done

echo "Copy each folder to its machine, and start its units; the NATS servers and the advisor first:"
while read -r host; do
  find "$out/$host" -type d -exec chmod 0755 {} +
  find "$out/$host" -type f ! -path '*/tls/*' ! -name '*passwords.xml' -exec chmod 0644 {} +
  printf '\n  tar -C %s -c etc | ssh root@%s tar -C / -x --no-overwrite-dir --no-same-owner\n' "$out/$host" "$host"
  [[ ,$nats, != *,$host,* ]] || printf '  ssh root@%s "id courier-nats || useradd --system courier-nats; chown -R courier-nats /etc/courier/tls/nats"\n' "$host"
  [[ ,$clickhouse, != *,$host,* ]] || printf '  ssh root@%s "chown -R clickhouse /etc/courier/tls/clickhouse /etc/clickhouse-server/*.d/*; systemctl restart clickhouse-server"\n' "$host"
  units=$(cd "$out/$host" && ls etc/systemd/system 2>/dev/null | grep 'service$' | tr '\n' ' ' || true)
  [ -z "$units" ] || printf '  ssh root@%s "systemctl daemon-reload; systemctl enable --now %s"\n' "$host" "${units% }"
done < <(printf '%s\n' ${nats//,/ } ${clickhouse//,/ } ${services//,/ } ${nodes//,/ } | awk '!seen[$0]++')
distinct() { tr , '\n' <<<"$1" | awk '!seen[$0]++' | paste -sd,; }
printf '\nInstall /usr/local/bin/nats-server on %s, and /usr/local/bin/courier on %s.\n' "$nats" \
  "$(distinct "$services${nodes:+,$nodes}")"
for person in ${persons//,/ }; do
  printf 'Give %s the files ca.crt, %s.nk and %s.token of %s; COURIER_NATS_URL is nats://%s:4222.\n' "$person" "$person" "$person" "$keys" "${nats//,/:4222,nats://}"
done
echo "Keep $keys/ca.key and $keys/operator.nk in a safe place, not on a server."
