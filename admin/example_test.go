package admin_test

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/telemetry"
)

// The page of a process is for browsers; a program reads it as JSON.
func Example() {
	meter := telemetry.New()
	s := anser.NewServer(meter.Option())
	defer s.Close()
	page, err := admin.New(meter, admin.Name("calculator"))
	if err != nil {
		log.Fatal(err)
	}
	defer page.Close()
	l, err := page.Listen("127.0.0.1:0") // a fixed port in production, such as 8970
	if err != nil {
		log.Fatal(err)
	}
	go page.Serve(l)

	resp, err := http.Get("http://" + l.Addr().String() + "/all.json")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	var d admin.Document
	if err := json.NewDecoder(resp.Body).Decode(&d); err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.Process.Name, "has servers:", len(d.Servers))
	// Output: calculator has servers: 1
}
