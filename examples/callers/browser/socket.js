// Calls the server of orders.proto in JSON without any library: a stream in both directions over
// WebSocket, and a call with fetch.
import { page } from "./page.js";

page(async (server, print) => {
  // There is no order yet: the stream ends with an error.
  await find(server, [1], print);

  // A call that is not a stream.
  const answer = await fetch(`${server}/orders.v1.Orders.Place`, {
    method: "POST",
    headers: { "Content-Type": "application/json", customer: "ann" },
    body: JSON.stringify({ item: "tea", quantity: 2 }),
  });
  const order = await answer.json();
  print(`placed ${order.number}: ${order.item} for ${order.customer}`);

  await find(server, [order.number, order.number], print);
});

// Asks for orders on one stream: each question is sent after the answer to the one before.
function find(server, numbers, print) {
  const address = `${server.replace(/^http/, "ws")}/orders.v1.Orders.Find?timeout=10`;
  const socket = new WebSocket(address, ["anser.json"]);
  const ask = () => {
    const number = numbers.shift();
    socket.send(number ? JSON.stringify({ number }) : ""); // "" is the end
  };
  return new Promise((resolve) => {
    socket.onopen = ask;
    socket.onmessage = (message) => {
      const order = JSON.parse(message.data);
      if (order.error) {
        print(`refused: ${order.error.code}: ${order.error.detail}`);
        return;
      }
      print(`found ${order.number}: ${order.item}`);
      ask();
    };
    socket.onclose = (end) => resolve(print(`closed with ${end.code}`));
  });
}
