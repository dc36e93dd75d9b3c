#!/usr/bin/env bash
# Builds a release in dist: an archive with the program for each system, the wheel of the Python client,
# and their checksums; where a Docker engine runs, also the image of the services, courier:VERSION. The
# same commit gives identical programs. It needs Go, and Python with pip, setuptools and wheel; if the
# modules of Go are in the cache, it needs no network.
#
#   VERSION=1.2.3 bash deploy/release.sh                     # default: 0.0.0-COMMIT
#   SYSTEMS="linux/amd64 darwin/arm64" bash deploy/release.sh   # default: all six
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
commit=$(git rev-parse --short HEAD)
version=${VERSION:-0.0.0-$commit}
systems=${SYSTEMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}

# program FILE FLAGS... builds the program.
program() {
  local file=$1
  shift
  CGO_ENABLED=0 go build -buildvcs=false -trimpath "$@" \
    -ldflags "-s -w -X main.version=$version -X main.commit=$commit" -o "$file" ./services/courier
}

go mod verify
files=$(mktemp -d) dist=$PWD/dist
trap 'rm -rf "$files"' EXIT
rm -rf "$dist"
mkdir -p "$dist" "$files/image/data/spool"
python3 -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$dist" ./clients/python
for system in $systems; do
  name=courier_${version}_${system/\//_}
  echo "$name"
  mkdir "$files/$name"
  cp LICENSE README.md CHANGELOG.md "$files/$name"
  if [ "${system%/*}" = windows ]; then
    GOOS=windows GOARCH=${system#*/} program "$files/$name/courier.exe"
    (cd "$files" && python3 -m zipfile -c "$dist/$name.zip" "$name")
  else
    GOOS=${system%/*} GOARCH=${system#*/} program "$files/$name/courier"
    tar -C "$files" -czf "$dist/$name.tar.gz" "$name"
  fi
done
shopt -s nullglob # there may be no archive for Windows
(cd "$dist" && sha256sum -- *.tar.gz *.zip *.whl >checksums.txt)

if docker version >/dev/null 2>&1; then
  GOOS=linux program "$files/image/courier" -tags noengine # an image has no C library for the embedded engine
  chmod 0700 "$files/image/data/spool"
  docker build --quiet --file deploy/release.Dockerfile --tag "courier:$version" "$files/image"
else
  echo "no image was built: there is no Docker engine"
fi
