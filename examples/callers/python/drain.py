"""Calls the server of orders.proto until the standard input ends: drain.py HOST:PORT"""

import sys
import threading

import grpc

import orders_pb2
import orders_pb2_grpc


def main(target):
    over = threading.Event()
    failed = []
    made = []
    with grpc.insecure_channel(target) as channel:
        orders = orders_pb2_grpc.OrdersStub(channel)
        callers = [threading.Thread(target=call, args=(orders, over, made, failed)) for _ in range(8)]
        orders.Place(orders_pb2.PlaceRequest(item="tea", quantity=1), timeout=60)
        print("calling", flush=True)
        for c in callers:
            c.start()
        sys.stdin.read()
        over.set()
        for c in callers:
            c.join()
    print(f"{sum(made)} calls, {len(failed)} failed", *failed[:1])


def call(orders, over, made, failed):
    """Makes unary calls and streams, one after the other."""
    calls = 0
    while not over.is_set():
        try:
            orders.Place(orders_pb2.PlaceRequest(item="tea", quantity=1), timeout=60)
            for _ in orders.Watch(orders_pb2.WatchRequest(count=1), timeout=60):
                pass
        except grpc.RpcError as e:
            failed.append(f"{e.code().name}: {e.details()}")
        calls += 2
    made.append(calls)


main(*sys.argv[1:])
