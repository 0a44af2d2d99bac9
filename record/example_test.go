package record_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/record"
)

func Example() {
	dir, err := os.MkdirTemp("", "calls")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	calls, err := record.New(record.Options{Dir: dir, Share: 1}) // all calls; 1 of 100 without Share
	if err != nil {
		log.Fatal(err)
	}
	silent := anser.Logger(slog.New(slog.DiscardHandler))
	s := anser.NewServer(calls.Option(), silent)
	anser.Handle(s, "Auth.Login", func(_ context.Context, in *login) (*session, error) {
		return &session{User: in.User, Token: "12345"}, nil
	})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	c, err := anser.Dial(l.Addr().String(), silent)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := anser.Call[session](context.Background(), c, "Auth.Login", &login{User: "ann", Password: "open"}); err != nil {
		log.Fatal(err)
	}
	c.Close()
	s.Close()
	if err := calls.Close(context.Background()); err != nil {
		log.Fatal(err)
	}

	recorded, err := record.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer recorded.Close()
	for call, err := range recorded.Calls(record.Filter{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %s\n%s\n%s\n", call.Method, call.Code, call.Request, call.Reply)
	}
	// Output:
	// Auth.Login ok
	// {"User":"ann","Password":"redacted","pin":0}
	// {"User":"ann","Token":"0"}
}
