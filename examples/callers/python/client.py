"""Calls the server of orders.proto: client.py HOST:PORT [CA.pem]"""

import sys

import grpc
from grpc_status import rpc_status

import orders_pb2
import orders_pb2_grpc


def main(target, authority=None):
    if authority:
        with open(authority, "rb") as f:
            channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(f.read()))
    else:
        channel = grpc.insecure_channel(target)
    with channel:
        calls(orders_pb2_grpc.OrdersStub(channel))


def calls(orders):
    # A call with a deadline, metadata, and what the server says after the reply.
    order, call = orders.Place.with_call(
        orders_pb2.PlaceRequest(item="tea", quantity=2),
        timeout=10,
        metadata=[("customer", "ann")],
        compression=grpc.Compression.Gzip,
    )
    trailers = dict(call.trailing_metadata())
    print(f"placed {order.number}: {order.item} for {order.customer}, from {trailers['warehouse']}")

    # An error with details.
    try:
        orders.Place(orders_pb2.PlaceRequest(item="cola"), timeout=10)
    except grpc.RpcError as e:
        print(f"refused: {e.code().name}: {e.details()}")
        for detail in rpc_status.from_call(e).details:
            bad = orders_pb2.BadField()
            if detail.Unpack(bad):
                print(f"  {bad.field}: want {bad.want}")

    # A stream of the client.
    items = [orders_pb2.PlaceRequest(item=i, quantity=1) for i in ("coffee", "tea")]
    print(f"imported {orders.Import(iter(items), timeout=10).count}")

    # A stream of the server.
    for order in orders.Watch(orders_pb2.WatchRequest(count=3), timeout=10):
        print(f"watched {order.number}: {order.item}")

    # A stream in both directions.
    for order in orders.Find((orders_pb2.GetRequest(number=n) for n in (3, 2)), timeout=10):
        print(f"found {order.number}: {order.item}")

    # A deadline that passes: there is no fourth order.
    try:
        for order in orders.Watch(orders_pb2.WatchRequest(), timeout=0.5):
            pass
    except grpc.RpcError as e:
        print(f"out of time: {e.code().name} after {order.number}")


main(*sys.argv[1:])
