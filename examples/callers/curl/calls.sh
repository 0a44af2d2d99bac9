#!/bin/sh
# Calls the server of orders.proto with curl: calls.sh http://HOST:PORT
set -eu
call() { curl -sS -N -H "Content-Type: ${type:-application/json}" "$@"; echo; }

# A call, with metadata.
call -H 'Customer: ann' -d '{"item": "tea", "quantity": 2}' "$1/orders.v1.Orders.Place"

# An error, as in RFC 9457.
call -d '{"item": "cola"}' -o /dev/null -w '%{http_code} %{content_type} %header{anser-outcome}' \
	"$1/orders.v1.Orders.Place"

# The same with Connect: the details are there by their types.
call -d '{"item": "cola"}' "$1/orders.v1.Orders/Place"

# A method without side effects, with GET: caches may keep the answer.
call -G -d 'encoding=json' --data-urlencode 'message={"number": 1}' "$1/orders.v1.Orders/Get"

# A stream of the client: a message a line.
printf '{"item": "coffee"}\n{"item": "tea"}\n' |
	type=application/x-ndjson call --data-binary @- "$1/orders.v1.Orders.Import"

# A stream of the server: a message a line, as soon as it is sent.
call -d '{"count": 2}' "$1/orders.v1.Orders.Watch"

# The same as events (SSE), and with a deadline of half a second, which passes.
call -H 'Accept: text/event-stream' -H 'Request-Timeout: 0.5' -d '{}' "$1/orders.v1.Orders.Watch"

# JSON-RPC 2.0: a batch of two calls.
call -d '[{"jsonrpc": "2.0", "id": 1, "method": "orders.v1.Orders.Get", "params": {"number": 2}},
	{"jsonrpc": "2.0", "id": 2, "method": "orders.v1.Orders.Get", "params": {"number": 9}}]' "$1/jsonrpc"
