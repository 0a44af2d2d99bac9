package main

import (
	"slices"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// all returns everything that is measured.
func all() ([]subject, error) {
	message, err := workload.NewMessage(workload.StandardPayload)
	if err != nil {
		return nil, err
	}
	data := benchpb.FilledPlain()
	anser, err := ofAnser(message, data)
	if err != nil {
		return nil, err
	}
	return slices.Concat(
		anser,
		ofProtobuf(message),
		ofMsgpack(data),
		ofJSON(data),
		[]subject{ofGob(data), ofHessian(data), ofHprose(data), ofTars(data)},
		ofThrift(data),
	), nil
}
