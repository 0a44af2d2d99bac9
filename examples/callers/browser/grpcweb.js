// Calls the server of orders.proto with grpc-web's client.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { GrpcWebClientBase, MethodDescriptor } from "grpc-web";
import { StatusSchema } from "./gen/google/rpc/status_pb.js";
import { BadFieldSchema, Orders, PlaceRequestSchema, WatchRequestSchema } from "./gen/orders_pb.js";
import { page } from "./page.js";

// Describes a method as protoc-gen-grpc-web does, with the messages of protoc-gen-es.
function describe(method, kind) {
  return new MethodDescriptor(
    `/${Orders.typeName}/${method.name}`,
    kind,
    Object,
    Object,
    (request) => toBinary(method.input, request),
    (bytes) => fromBinary(method.output, bytes),
  );
}

const place = describe(Orders.method.place, "unary");
const watch = describe(Orders.method.watch, "server_streaming");

page(async (server, print) => {
  // A call with a deadline and metadata.
  const client = new GrpcWebClientBase({ format: "text" });
  const call = (method, request, metadata) =>
    client.unaryCall(server + method.getName(), request, metadata, method);
  const order = await call(place, create(PlaceRequestSchema, { item: "tea", quantity: 2 }), {
    deadline: String(Date.now() + 10_000),
    customer: "ann",
  });
  print(`placed ${order.number}: ${order.item} for ${order.customer}`);

  // An error with details.
  try {
    await call(place, create(PlaceRequestSchema, { item: "cola" }), {});
  } catch (e) {
    print(`refused: ${e.code}: ${e.message}`);
    const status = fromBinary(StatusSchema, base64Decode(e.metadata["grpc-status-details-bin"]));
    for (const detail of status.details) {
      const bad = anyUnpack(detail, BadFieldSchema);
      print(`  ${bad.field}: want ${bad.want}`);
    }
  }

  // A stream of the server, until a deadline passes.
  await new Promise((resolve) => {
    const request = create(WatchRequestSchema);
    const metadata = { deadline: String(Date.now() + 1000) };
    client
      .serverStreaming(server + watch.getName(), request, metadata, watch)
      .on("data", (o) => print(`watched ${o.number}: ${o.item}`))
      .on("error", (e) => resolve(print(`out of time: ${e.code}`)))
      .on("end", resolve);
  });
});
