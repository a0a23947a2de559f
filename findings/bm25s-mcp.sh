#!/usr/bin/env bash
# bm25s 0.3.16: its MCP server ends without a word beside mcp 2, and beside mcp 1 writes lines to the protocol and uses no port.
#
# Documentation (https://github.com/xhluca/bm25s#mcp-server): `pip install "bm25s[mcp]"`, then `bm25 mcp launch --port 8000
# --index-dir INDEX`. The extra takes any mcp, and release 2 has no mcp.server.fastmcp, which bm25s/mcp/server.py imports; cli.py turns
# the ImportError into exit code 1 without a message. With mcp 1 the server always speaks over standard input and output, whatever
# --port says, and prints two lines there before it starts, where the protocol allows nothing but messages
# (https://modelcontextprotocol.io/specification/2025-06-18/basic/transports). The default k of `retrieve`, 10, is an error for fewer
# documents. Seen on 2026-11-30: the lines of `expected`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
install=("$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check)
"${install[@]}" 'bm25s[mcp]==0.3.16' mcp==2.3.0 numpy==2.4.6
cat >"$folder/expected" <<'END'
mcp 2.3.0: exit code 1, 0 bytes of output
mcp 1.30.0, line 1 is a message: False
mcp 1.30.0, line 2 is a message: False
mcp 1.30.0, line 3 is a message: True
retrieve: Error executing tool retrieve: k of 10 is larger than the number of available scores, which is 3
retrieve, k=2: 2 documents
END
cd "$folder"
venv/bin/python <<'END'
import bm25s

docs = ["hot springs of the valley", "a harbour wall in the storm", "cold sea and storm"]
retriever = bm25s.BM25()
retriever.index(bm25s.tokenize(docs, show_progress=False), show_progress=False)
retriever.save("index", corpus=docs)
END
code=0
venv/bin/bm25 mcp launch --port 8000 --index-dir index </dev/null >output 2>&1 || code=$?
echo "mcp 2.3.0: exit code $code, $(wc -c <output) bytes of output" >seen
"${install[@]}" mcp==1.30.0
cat >client.py <<'END'
import json
import subprocess

command = ["venv/bin/bm25", "mcp", "launch", "--port", "8000", "--index-dir", "index"]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def send(**message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    server.stdin.flush()


def text(**arguments):
    send(id=2, method="tools/call", params={"name": "retrieve", "arguments": {"query": "storm", **arguments}})
    return json.loads(server.stdout.readline())["result"]["content"][0]["text"]


facts = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}
send(id=1, method="initialize", params=facts)
for number in (1, 2, 3):
    print(f"mcp 1.30.0, line {number} is a message: {server.stdout.readline().startswith('{')}")
send(method="notifications/initialized")
print("retrieve:", text().partition(" (")[0])
print("retrieve, k=2:", text(k=2).count("Rank"), "documents")
server.stdin.close()
server.wait()
END
venv/bin/python client.py >>seen
cat seen
diff expected seen
