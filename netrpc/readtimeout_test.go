package netrpc_test

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io"
	"net"
	stock "net/rpc"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// feed sends 20 KiB per second, which is enough progress for Stall, until everything is sent or
// the connection has ended.
func feed(conn net.Conn, message []byte) {
	for len(message) > 0 {
		n := min(len(message), 20<<10)
		if _, err := conn.Write(message[:n]); err != nil {
			return
		}
		message = message[n:]
		time.Sleep(time.Second)
	}
}

// A request must arrive within ReadTimeout of its first byte. Between requests a connection may be
// idle, and the time of each request is separate.
func TestReadTimeout(t *testing.T) {
	for name, tc := range map[string]struct {
		json    bool
		timeout time.Duration
		late    bool
	}{
		"gob, late":     {false, 2 * time.Second, true},
		"gob, in time":  {false, 6 * time.Second, false},
		"gob, without":  {false, 0, false},
		"JSON, late":    {true, 2 * time.Second, true},
		"JSON, in time": {true, 6 * time.Second, false},
		"JSON, without": {true, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := quiet(Keeper{})
				s.ReadTimeout = tc.timeout
				var out bytes.Buffer
				enc := gob.NewEncoder(&out)
				call := func() []byte { // of 80 KiB, which take 4 s
					defer out.Reset()
					if err := errors.Join(enc.Encode(&stock.Request{ServiceMethod: "Keeper.Length"}), enc.Encode(make([]byte, 80<<10))); err != nil {
						t.Error(err)
					}
					return bytes.Clone(out.Bytes())
				}
				var codec func(io.ReadWriteCloser) netrpc.ServerCodec
				if tc.json {
					codec = jsonrpc.NewServerCodec
					call = func() []byte {
						return []byte(`{"method":"Keeper.Length","params":["` + strings.Repeat("AAAA", 20<<10) + `"],"id":1}`)
					}
				}
				conn := serveInMemory(t, s, codec)()
				defer conn.Close()
				var feeding sync.WaitGroup
				defer feeding.Wait()
				for range 3 {
					began := time.Now()
					message := call()
					feeding.Go(func() { feed(conn, message) })
					if tc.late { // gob has read the header, and returns the error of the call
						got, err := io.ReadAll(conn)
						if took := time.Since(began); err != nil || took != tc.timeout {
							t.Errorf("%q, %v after %v, want the end", got, err, took)
						}
						break
					}
					if _, err := conn.Read(make([]byte, 1000)); err != nil {
						t.Fatalf("%v after %v, want an answer", err, time.Since(began))
					}
					time.Sleep(time.Hour)
				}
				synctest.Wait()
				if st := s.Stats(); (st.Broken == 1) != tc.late {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// A reply must arrive within ReadTimeout of its first byte; before that a client waits as long as
// its context.
func TestReadTimeoutOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(ansertest.Network)
		l := network.Listen("server")
		defer l.Close()
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			time.Sleep(time.Hour)
			io.WriteString(conn, `{"id":0,"result":"`)
		}()
		d := &netrpc.Dialer{Net: network.Dial, Codec: jsonrpc.NewClientCodec, Stall: -1, ReadTimeout: 3 * time.Second}
		c, err := d.Dial(t.Context(), "tcp", "server")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		began := time.Now()
		err = c.Call("A.B", 1, nil)
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "ReadTimeout") || took != time.Hour+d.ReadTimeout {
			t.Errorf("%v after %v", err, took)
		}
	})
}
