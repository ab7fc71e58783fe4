#!/usr/bin/env bash
# Runs tpcc.lua: sysbench.sh HOST PORT DATABASE [FLAGS OF SYSBENCH]. It prints figures to stderr, and ok.
set -euo pipefail
host=$1 port=$2 database=$3
shift 3
bench() {
	sysbench ./tpcc.lua --db-driver=mysql --mysql-host="$host" --mysql-port="$port" --mysql-user=root --mysql-db="$database" --db-ps-mode=disable \
		--mysql-ignore-errors=1213,1205 --threads=2 --time=60 --events=500 "$@" >&2
}
bench "$@" prepare
bench "$@" check
bench "$@" run
bench "$@" check
echo ok
