package anser

import "github.com/anser-rpc/anser/wire"

// errHTTP is the error of a peer that speaks HTTP.
var errHTTP = wire.Errorf(wire.BadFrame, "not the Anser protocol: it is a request of HTTP")
