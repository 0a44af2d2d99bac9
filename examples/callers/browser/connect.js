// Calls the server of orders.proto with Connect's client.
import { createClient, Code, ConnectError } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { BadFieldSchema, Orders } from "./gen/orders_pb.js";
import { page } from "./page.js";

page(async (server, print) => {
  for (const create of [createConnectTransport, createGrpcWebTransport]) {
    await calls(createClient(Orders, create({ baseUrl: server })), print);
  }
});

async function calls(orders, print) {
  // A call with a deadline, metadata, and what the server says after the reply.
  const order = await orders.place(
    { item: "tea", quantity: 2 },
    {
      timeoutMs: 10_000,
      headers: { customer: "ann" },
      onTrailer: (trailers) => print(`from ${trailers.get("warehouse")}`),
    },
  );
  print(`placed ${order.number}: ${order.item} for ${order.customer}`);

  // An error with details.
  try {
    await orders.place({ item: "cola" });
  } catch (err) {
    const e = ConnectError.from(err);
    print(`refused: ${Code[e.code]}: ${e.rawMessage}`);
    for (const bad of e.findDetails(BadFieldSchema)) {
      print(`  ${bad.field}: want ${bad.want}`);
    }
  }

  // A stream of the server, until a deadline passes.
  try {
    for await (const o of orders.watch({}, { timeoutMs: 500 })) {
      print(`watched ${o.number}: ${o.item}`);
    }
  } catch (err) {
    print(`out of time: ${Code[ConnectError.from(err).code]}`);
  }
}
