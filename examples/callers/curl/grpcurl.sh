#!/bin/sh
# Calls the server of orders.proto with grpcurl: grpcurl.sh HOST:PORT
set -eu
call() { grpcurl -plaintext "$@"; }

# The services, a method and a message, by reflection.
call "$1" list
call "$1" describe orders.v1.Orders.Place
call "$1" describe orders.v1.PlaceRequest

# A call, with metadata and a deadline.
call -H 'customer: ann' -max-time 10 -d '{"item": "tea", "quantity": 2}' "$1" orders.v1.Orders/Place

# An error with details.
call -d '{"item": "cola"}' "$1" orders.v1.Orders/Place 2>&1 || true

# A stream of the client, and one in both directions.
call -d '{"item": "coffee"} {"item": "tea"}' "$1" orders.v1.Orders/Import
call -d '{"number": 3} {"number": 2}' "$1" orders.v1.Orders/Find

# The health of a service.
call -d '{"service": "orders.v1.Orders"}' "$1" grpc.health.v1.Health/Check
