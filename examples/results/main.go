// Command results serves functions with several arguments and results directly, and calls them as
// functions.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
)

// Math is a service of plain methods.
type Math struct{}

// DivMod divides.
func (Math) DivMod(_ context.Context, a, b int) (q, r int, err error) {
	if b == 0 {
		return 0, 0, anser.Errorf(anser.InvalidArgument, "division by zero")
	}
	return a / b, a % b, nil
}

// Span returns the minimum and the maximum of a list.
func (Math) Span(_ context.Context, list []float64) (least, greatest float64, err error) {
	if len(list) == 0 {
		return 0, 0, anser.Errorf(anser.InvalidArgument, "the list is empty")
	}
	least, greatest = list[0], list[0]
	for _, x := range list {
		least, greatest = min(least, x), max(greatest, x)
	}
	return least, greatest, nil
}

func run(out io.Writer) error {
	s := anser.NewServer()
	// The names of arguments and results are not available at run time, so they are repeated here.
	s.Register(Math{}, anser.Params("DivMod(a, b) (q, r)", "Span(list) (least, greatest)"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go s.Serve(l)
	defer s.Close()
	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	ctx := context.Background()

	var math struct {
		DivMod func(ctx context.Context, a, b int) (q, r int, err error)
		Span   func(ctx context.Context, list []float64) (least, greatest float64, err error)
	}
	if err := anser.Bind(c, "Math", &math); err != nil {
		return err
	}
	q, r, err := math.DivMod(ctx, 38, 7)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "38 = %d * 7 + %d\n", q, r)
	least, greatest, err := math.Span(ctx, []float64{2.5, -1, 7})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "from %v to %v\n", least, greatest)
	_, _, err = math.DivMod(ctx, 1, 0)
	fmt.Fprintf(out, "1 / 0: %s\n", anser.CodeOf(err))

	// Clients without the Go types send JSON: the arguments in order, or by name.
	for _, arguments := range []json.RawMessage{[]byte(`[38, 7]`), []byte(`{"b": 7, "a": 38}`)} {
		reply, err := anser.Call[json.RawMessage](ctx, c, "Math.DivMod", &arguments, anser.Codec(new(codec.JSON)))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s gives %s\n", arguments, *reply)
	}
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
