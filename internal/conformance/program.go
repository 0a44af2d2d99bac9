package conformance

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/codec/protobuf/pbrt"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// prefix begins the names of the suite's messages.
const prefix = "protobuf_test_messages."

// left are the messages of the suite that the generator leaves to the standard library, which has
// its own code for the format of message sets.
var left = []string{
	prefix + "editions.proto2.TestAllRequiredTypesProto2.MessageSetCorrect",
	prefix + "editions.proto2.TestAllTypesProto2.MessageSetCorrect",
	prefix + "proto2.TestAllRequiredTypesProto2.MessageSetCorrect",
	prefix + "proto2.TestAllTypesProto2.MessageSetCorrect",
}

// Main is the program that the runner starts. With the argument "messages" it counts the messages
// of the suite that have generated code, and fails if they are not the expected ones. With "shared"
// and "separate" it answers with the codec and the code's mode of that name, with "standard" with
// the standard library. The exit code is returned.
func Main(args []string, in io.Reader, out, log io.Writer) int {
	var c Codec
	switch mode := strings.Join(args, " "); mode {
	case "messages":
		if err := Messages(out); err != nil {
			fmt.Fprintln(log, err)
			return 1
		}
		return 0
	case "shared":
		c = protobuf.New()
	case "separate":
		c = protobuf.New(protobuf.Separate())
	case "standard":
		c = standard{}
	default:
		fmt.Fprintf(log, "unknown arguments %q: say messages, shared, separate or standard\n", mode)
		return 2
	}
	if err := Serve(in, out, c); err != nil {
		fmt.Fprintln(log, err)
		return 1
	}
	return 0
}

// Messages writes how many messages of the suite are linked, and how many of them have generated
// code. It returns an error if there are none, or if others than expected have no code.
func Messages(out io.Writer) error {
	count := 0
	var without []string
	protoregistry.GlobalTypes.RangeMessages(func(t protoreflect.MessageType) bool {
		if d := t.Descriptor(); strings.HasPrefix(string(d.FullName()), prefix) && !d.IsMapEntry() {
			count++
			if _, ok := t.Zero().Interface().(pbrt.Message); !ok {
				without = append(without, string(d.FullName()))
			}
		}
		return true
	})
	if count == 0 {
		return errors.New("the program is not linked with the messages of the suite")
	}
	slices.Sort(without)
	fmt.Fprintf(out, "%d of %d messages have generated code; the standard library has that of %s\n",
		count-len(without), count, strings.Join(without, ", "))
	if !slices.Equal(without, left) {
		return fmt.Errorf("messages without generated code are %q, but the expected ones are %q", without, left)
	}
	return nil
}
