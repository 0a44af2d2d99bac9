package suite

import "github.com/anser-rpc/anser/arena/result"

const (
	million    = 1_000_000
	kissWindow = 1000
)

// kissSource is where the figures stand, under the title Performance test code: "100W QPS
// synchronous testing takes time: 20 seconds, average 5w QPS per second", asynchronous "5 seconds,
// with an average of 20W QPS", and "1000 concurrent, 100wQPS asynchronous testing takes time: 5
// seconds". W is 10,000.
const kissSource = "https://github.com/huntlabs/kiss-rpc, README.md of commit dc245e44b6c5"

// kissPublished are the figures of the authors of kiss-rpc. Nothing else was published.
var kissPublished = []result.Row{
	kiss("synchronous calls", result.Shape{Callers: 1, Conns: 1}, 50_000),
	kiss("asynchronous calls", result.Shape{Callers: 1, Conns: 1, Window: kissWindow}, 200_000),
	kiss("asynchronous calls of 1000 connections", result.Shape{Callers: 1000, Conns: 0}, 200_000),
}

func kiss(settings string, shape result.Shape, rate float64) result.Row {
	shape.Calls, shape.Servers, shape.Clients, shape.Hosts = million, 1, 1, 1
	row := result.Row{
		Peer: "kiss-rpc", Framework: "kiss-rpc", Version: "with FlatBuffers", Language: "d",
		Codec: "flatbuffers", Settings: settings, Published: kissSource,
		Marks: []string{
			"measured by its authors on another machine: Ubuntu 16.04, Xeon E3-1230 at 3.3 GHz with 8 threads, 8 GB, loopback",
			"its call sends and returns a name of 10 letters and a number, where add has two numbers and one",
			"only the calls a second were published",
		},
		Workload: "add", Shape: shape, Valid: true,
	}
	row.Calls, row.CallsPerSecond = million, rate
	row.CallsPerSecondRange = [2]float64{rate, rate}
	return row
}
