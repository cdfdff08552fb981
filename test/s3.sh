#!/usr/bin/env bash
# Runs a command with a real S3 server (versitygw) beside it:
#
#     test/s3.sh [CACHE] -- go test ./host/native -run S3
#
# The server is built once into CACHE (.cache in the repository unless named), about 100 s. It
# listens on a free loopback port, keeps its objects in a temporary folder (TMPDIR, on a file system
# with extended attributes: that is where it can replace an object and its metadata in one step),
# and ends with the command. TIDEMARK_TEST_S3 tells the command where it is, in the form
# http://ACCESSKEY:SECRET@HOST:PORT/BUCKET?region=REGION; the line is printed as well.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cache=$root/.cache
if [ "${1:-}" != -- ] && [ $# -gt 0 ]; then
    cache=$1
    shift
fi
if [ "${1:-}" != -- ] || [ $# -lt 2 ]; then
    echo "usage: test/s3.sh [CACHE] -- COMMAND [ARGUMENT...]" >&2
    exit 2
fi
shift

mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
# The version stands in its go.mod; a server of another version has another name here.
version=$(awk '$1 == "github.com/versity/versitygw" { print $2 }' "$root/build/tools/versitygw/go.mod")
server=$cache/versitygw-$version
if [ ! -x "$server" ]; then
    echo "building versitygw $version into $cache" >&2
    (cd "$root/build/tools/versitygw" && go build -o "$server.$$" github.com/versity/versitygw/cmd/versitygw)
    mv "$server.$$" "$server"
fi

work=$(mktemp -d)
pid=
finish() {
    if [ -n "$pid" ]; then
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir -p "$work/objects/tidemark" # a folder is a bucket

# start tries one port; it fails when another program has it.
start() {
    port=$1
    ROOT_ACCESS_KEY=tidemark ROOT_SECRET_KEY=tidemark-secret "$server" --quiet --keep-alive --region us-east-1 \
        --port "127.0.0.1:$port" posix "$work/objects" >"$work/log" 2>&1 &
    pid=$!
    for _ in $(seq 100); do
        kill -0 "$pid" 2>/dev/null || return 1
        if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            sleep 0.1 # a server that lost the port to another one is gone by now
            kill -0 "$pid" 2>/dev/null
            return
        fi
        sleep 0.1
    done
    return 1
}

started=
for _ in 1 2 3 4 5; do
    if start $((20000 + RANDOM % 12000)); then # below the ports that systems hand out
        started=yes
        break
    fi
    kill "$pid" 2>/dev/null || true
done
if [ -z "$started" ]; then
    echo "versitygw does not start:" >&2
    cat "$work/log" >&2
    exit 1
fi

export TIDEMARK_TEST_S3="http://tidemark:tidemark-secret@127.0.0.1:$port/tidemark?region=us-east-1"
echo "TIDEMARK_TEST_S3=$TIDEMARK_TEST_S3" >&2
"$@"
