package websocket_test

import (
	"log"
	"net/http"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/transport/websocket"
)

func Example() {
	tokens, err := auth.OpenTokens("tokens.json")
	if err != nil {
		log.Fatal(err)
	}
	server := anser.NewServer(anser.Authenticate(tokens))
	h := websocket.NewHandler("wss://rpc.example.org:443/anser")
	http.Handle("/anser", h)
	go server.Serve(h)
	go http.ListenAndServeTLS(":443", "server.pem", "server.key", nil)

	c, err := anser.Dial("wss://rpc.example.org:443/anser", websocket.WSS(), auth.TokenFile("token"))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
}
