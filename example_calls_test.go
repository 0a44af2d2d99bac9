package anser_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/compress"
)

// Dial does not connect and does not wait: it fails only for a target or an option that cannot
// work.
func ExampleDial() {
	for _, target := range []string{"127.0.0.1:8972", "tcp://10.0.0.1:8972,10.0.0.2:8972", "unix:///run/arith.sock", "no port"} {
		c, err := anser.Dial(target)
		if err != nil {
			fmt.Println("this target cannot work")
			continue
		}
		fmt.Println(c.Status().Target)
		c.Close()
	}
	// Output:
	// 127.0.0.1:8972
	// tcp://10.0.0.1:8972,10.0.0.2:8972
	// unix:///run/arith.sock
	// this target cannot work
}

// Many calls are in flight, and no goroutine waits for them.
func ExampleGo() {
	p := newPair(nil, nil)
	defer p.close()
	ctx := context.Background()
	var futures []*anser.Future[Reply]
	for i := range 3 {
		futures = append(futures, anser.Go[Reply](ctx, p.client, "Arith.Mul", &Args{A: i, B: 10}))
	}
	for _, f := range futures {
		reply, err := f.Wait()
		fmt.Println(reply.C, err)
	}
	// Output:
	// 0 <nil>
	// 10 <nil>
	// 20 <nil>
}

// The code classifies an error, whether it comes from the server, the client or the network.
func ExampleCodeOf() {
	p := newPair(nil, nil)
	defer p.close()
	_, err := anser.Call[Reply](context.Background(), p.client, "Arith.Mull", &Args{A: 7, B: 8})
	switch anser.CodeOf(err) {
	case anser.Unimplemented:
		fmt.Println("the server is too old")
	case anser.Unavailable:
		fmt.Println("try again later")
	}
	// Output: the server is too old
}

// The outcome says whether a call that failed may have run.
func ExampleOutcomeOf() {
	c, err := anser.Dial("127.0.0.1:1", anser.WithFailMode(anser.Failfast)) // an address without a listener
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_, err = anser.Call[Reply](context.Background(), c, "Account.Pay", &Args{A: 7, B: 8})
	switch anser.OutcomeOf(err) {
	case anser.NotSent, anser.Refused:
		fmt.Println("nothing was paid")
	case anser.OutcomeUnknown:
		fmt.Println("ask whether it was paid")
	}
	// Output: nothing was paid
}

// An *Error has the details: the message of the server, its address, and the attempts.
func ExampleError() {
	s := anser.NewServer()
	anser.Handle(s, "User.Get", func(context.Context, *Args) (*Reply, error) {
		return nil, anser.Errorf(anser.NotFound, "there is no user 7").WithDetails([]byte("deleted"))
	})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	p := newPairOn(s, l, nil)
	defer p.close()
	_, err = anser.Call[Reply](context.Background(), p.client, "User.Get", &Args{})
	var e *anser.Error
	if errors.As(err, &e) {
		fmt.Println(e.Code, e.Outcome, e.Remote, e.Message, string(e.Details))
	}
	// Output: not found executed true there is no user 7 deleted
}

// Hedging: a call that has no reply after 10 ms is sent to a second instance, and the first reply
// wins. The method must be idempotent. Without BackupAfter the time is learned for each method.
func ExampleBackupAfter() {
	p := newPair(nil, nil)
	defer p.close()
	reply, err := anser.Call[Reply](context.Background(), p.client, "Arith.Mul", &Args{A: 7, B: 8},
		anser.WithFailMode(anser.Backup), anser.BackupAfter(10*time.Millisecond), anser.Idempotent())
	fmt.Println(reply.C, err)
	// Output: 56 <nil>
}

// Options of a server: what it accepts, and how it ends.
func ExampleServerOption() {
	s := anser.NewServer(
		anser.MaxInFlight(1000),
		anser.MaxConns(5000),
		anser.MaxMessage(1<<20),
		anser.DrainGrace(10*time.Second),
	)
	defer s.Close()
}

// Options of a client: how it connects, chooses an instance and handles failures. Options of
// calls apply to all of its calls.
func ExampleDialOption() {
	c, err := anser.Dial("tcp://10.0.0.1:8972,10.0.0.2:8972",
		anser.Balancer(balance.RoundRobin()),
		anser.Conns(4),
		anser.ConnectTimeout(time.Second),
		anser.RetryBudget(0.1, 5),
		anser.Timeout(2*time.Second),
		anser.Compress(compress.Gzip()),
	)
	fmt.Println(c.Close(), err)
	// Output: <nil> <nil>
}

// Options of one call.
func ExampleCallOption() {
	p := newPair(nil, nil)
	defer p.close()
	reply, err := anser.Call[Reply](context.Background(), p.client, "Arith.Mul", &Args{A: 7, B: 8},
		anser.Timeout(time.Second),
		anser.Attempts(2),
		anser.HashKey("user-7"),
	)
	fmt.Println(reply.C, err)
	// Output: 56 <nil>
}

// Options of a method.
func ExampleHandleOption() {
	s := anser.NewServer()
	defer s.Close()
	err := anser.Handle(s, "Arith.Mul", mul,
		anser.Idempotent(),
		anser.Alias("Arith.Multiply"),
		anser.MaxInFlight(100),
	)
	fmt.Println(err)
	// Output: <nil>
}
