package jsonrpc

import (
	"bytes"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/netrpc"
)

// Protocol returns JSON-RPC 1.0 and 2.0 over connections, for [anser.Protocols]: a client sends
// requests one after the other, each a JSON object or an array of them.
func Protocol() anser.Protocol {
	return netrpc.NewProtocol("JSON-RPC", beginsJSON, NewServerCodec)
}

// beginsJSON recognizes an object or an array.
func beginsJSON(begin []byte) (is, may bool) {
	rest := bytes.TrimLeft(begin, " \t\r\n")
	if len(rest) == 0 {
		return false, true
	}
	return rest[0] == '{' || rest[0] == '[', false
}
