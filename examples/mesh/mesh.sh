#!/bin/sh
# Start a mesh of Receptor on this machine, a controller and two workers, run a command, and end the mesh:
#
#   ./mesh.sh ansible-playbook delivery.toolchain.drift -e @desired.yml -e drift_report=report \
#     -e drift_workers=receptor:worker1,receptor:worker2
#
# Needs receptor, receptorctl and ansible-runner on the PATH. MESH_PORT: the port of the controller, on 127.0.0.1.
set -eu
port=${MESH_PORT:-27199}
worker=$(cd "$(dirname "$0")/../../plugins/plugin_utils/slices" && pwd)/worker.sh
mesh=$(mktemp -d)
export RECEPTORCTL_SOCKET="$mesh/control.sock"

nodes=
finish() {
  for node in $nodes; do kill "$node"; done
  wait
  rm -rf "$mesh"
}
trap finish EXIT
trap 'exit 143' HUP INT TERM

start() {
  receptor --config "$mesh/$1.yml" >"$mesh/$1.log" 2>&1 &
  nodes="$nodes $!"
}

cat >"$mesh/controller.yml" <<END
- node: {id: controller, datadir: $mesh/data}
- log-level: {level: warning}
- control-service: {service: control, filename: $RECEPTORCTL_SOCKET}
- tcp-listener: {bindaddr: 127.0.0.1, port: $port}
END
start controller
for name in worker1 worker2; do
  cat >"$mesh/$name.yml" <<END
- node: {id: $name, datadir: $mesh/data}
- log-level: {level: warning}
- control-service: {service: control}
- tcp-peer: {address: "127.0.0.1:$port"}
- work-command: {worktype: toolchain-slice, command: sh, params: $worker, allowruntimeparams: true}
END
  start "$name"
done

tries=0
until [ "$(receptorctl status 2>/dev/null | grep -c '^worker[12] *toolchain-slice')" -eq 2 ]; do
  tries=$((tries + 1))
  if [ "$tries" -gt 100 ]; then
    echo "The mesh did not come up:" >&2
    cat "$mesh"/*.log >&2
    exit 1
  fi
  sleep 0.2
done

"$@"
