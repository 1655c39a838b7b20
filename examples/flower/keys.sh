#!/usr/bin/env bash
# keys.sh FOLDER HOST NODE...: an authority, the server's certificate, and a pair of keys per node.
#
# HOST is the SuperLink's name or address, as SuperNodes write it. The files for each place:
#   the SuperLink    ca.crt, server.crt, server.key, and every NODE.pub to register
#   a SuperNode      ca.crt and its own NODE, which should be made there and never leave it
#   nobody           ca.key: who has it can pretend to be the SuperLink
set -euo pipefail
if [ $# -lt 3 ]; then
    echo "usage: keys.sh FOLDER HOST NODE..." >&2
    exit 2
fi
folder=$1 host=$2
shift 2
case $host in
    *[!0-9.]*) name="DNS:$host" ;;
    *) name="IP:$host" ;;
esac
umask 077 # private keys are for their owner alone
mkdir -p "$folder"
cd "$folder"

openssl ecparam -name secp384r1 -genkey -noout -out ca.key
openssl req -x509 -new -key ca.key -sha384 -days 3650 -subj "/CN=The federation's authority" -out ca.crt \
    -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign"

openssl ecparam -name secp384r1 -genkey -noout -out server.key
openssl req -new -key server.key -sha384 -subj "/CN=SuperLink" -out server.csr
# A client compares the name that it called with this list, and with nothing else.
printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\n' "$name" > server.ext
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -sha384 -days 365 \
    -extfile server.ext -out server.crt
rm server.csr server.ext

for node in "$@"; do
    ssh-keygen -q -t ecdsa -b 384 -N "" -C "$node" -f "$node"
done
