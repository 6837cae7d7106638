# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Run the slice that comes as a stream, and give back what it found: worker.sh FOLDER
# However it ends, no process of it goes on and no file of it stays.
folder=$1
case $folder in
  /*/toolchain-slice-*) ;;
  *) echo "worker.sh takes the folder /.../toolchain-slice-..., not '$folder'" >&2; exit 64 ;;
esac
umask 077
mkdir "$folder" || exit 73

finish() {
  # a process that ends meanwhile is an error to grep: what it has found counts, not its status
  while left=$(grep -lszxF "TOOLCHAIN_SLICE=$folder" /proc/[0-9]*/environ); [ -n "$left" ]; do
    for process in $left; do
      process=${process#/proc/}
      kill -s KILL "${process%/environ}" 2>/dev/null
    done
  done
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 143' HUP INT TERM

TOOLCHAIN_SLICE=$folder TMPDIR=$folder ANSIBLE_LOCAL_TEMP=$folder/ansible ANSIBLE_REMOTE_TEMP=$folder/ansible \
  ansible-runner worker --keepalive-seconds 20 --private-data-dir "$folder/data"
