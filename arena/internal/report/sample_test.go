package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anser-rpc/anser/arena/result"
)

// A document of the size and kind that a full run writes, so that the page is looked at as it will
// be. Its figures are made up by the formulas below; nothing here was measured.

// samplePeer is a peer at 1,000 callers: what it costs, and how it is made.
type samplePeer struct {
	name, framework, language, codec, settings string
	rate, cpu, mib                             float64
	shared                                     bool // callers can share connections
	marks                                      []string
}

const blocking = "handlers on the read goroutine: one slow handler blocks its connection"

var samplePeers = []samplePeer{
	{"anser", "anser", "go", "vtproto", "default options", 180_000, 10.3, 58, true, nil},
	{"anser-go", "anser", "go", "vtproto", "default options, futures", 186_000, 9.9, 61, true, nil},
	{"ceiling", "ceiling", "go", "vtproto", "framing, batched writes, codec", 205_000, 8.8, 49, true, []string{"not a framework: no deadlines, errors, limits"}},
	{"arpc-inline", "arpc", "go", "vtproto", "SetAsyncResponse(false), SetBatchRecv", 147_000, 10.9, 52, true, []string{blocking, "Nagle's algorithm is on"}},
	{"arpc", "arpc", "go", "vtproto", "defaults", 94_000, 18.6, 71, true, []string{"Nagle's algorithm is on"}},
	{"arpc-nodelay", "arpc", "go", "vtproto", "TCP_NODELAY", 110_000, 17.1, 70, true, nil},
	{"netrpc-protobuf", "netrpc", "go", "vtproto", "own codec of protobuf bytes, buffered", 108_000, 17.3, 45, true, []string{"no deadline, no metadata"}},
	{"netrpc-gob", "netrpc", "go", "gob", "as in the standard library", 61_000, 31.5, 47, true, []string{"no deadline, no metadata"}},
	{"rpcx-handler", "rpcx", "go", "vtproto", "AddHandler", 91_000, 20.8, 64, true, nil},
	{"rpcx-call", "rpcx", "go", "vtproto", "Call, vtproto through share.Codecs", 72_000, 26.3, 66, true, nil},
	{"rpcx-go", "rpcx", "go", "vtproto", "Go", 74_500, 25.6, 69, true, nil},
	{"kitex-mux", "kitex", "go", "protobuf", "multiplexed, netpoll", 82_000, 22.9, 83, true, nil},
	{"grpc-go", "grpc-go", "go", "vtproto", "shared write buffer, stream workers, large windows", 45_000, 42, 92, true, nil},
	{"connect-go", "connect", "go", "vtproto", "HTTP/2 without TLS", 22_000, 86, 105, true, nil},
	{"drpc", "drpc", "go", "vtproto", "a pool of connections", 58_000, 33, 60, true, nil},
	{"tarsgo", "tars", "go", "tars", "async client", 56_000, 31, 75, true, nil},
	{"trpc-go", "trpc", "go", "protobuf", "tnet, multiplexed", 52_000, 35, 88, true, nil},
	{"hprose", "hprose", "go", "hprose", "TCP, full duplex", 35_000, 56, 97, true, nil},
	{"go-micro", "go-micro", "go", "protobuf", "gRPC transport", 24_000, 80, 110, true, nil},
	{"dubbo-go-triple", "dubbo-go", "go", "protobuf", "Triple", 11_000, 179, 160, true, nil},
	{"brpc", "brpc", "cpp", "protobuf", "one connection, bthreads", 134_000, 13.8, 38, true, nil},
	{"thrift-cpp-nonblocking", "thrift", "cpp", "thrift binary", "TNonblockingServer, libevent", 76_000, 26, 41, false, nil},
	{"grpc-cpp-callback", "grpc", "cpp", "protobuf", "callback API, arenas", 57_000, 34, 66, true, nil},
	{"grpc-java", "grpc-java", "java", "protobuf", "netty, direct executor", 23_000, 72, 540, true, nil},
	{"dubbo-java", "dubbo", "java", "hessian2", "dubbo protocol", 31_000, 66, 610, true, nil},
	{"dubbo-java-triple", "dubbo", "java", "protobuf", "Triple", 24_500, 81, 640, true, nil},
	{"motan", "motan", "java", "hessian2", "motan2, netty 4", 27_000, 74, 580, true, nil},
	{"thrift-java", "thrift", "java", "thrift binary", "TThreadedSelectorServer, framed", 45_000, 43, 420, false, nil},
}

// sampleShapes are those of a full run, more or less.
func sampleShapes() map[string][]result.Shape {
	shape := func(change func(s *result.Shape)) result.Shape {
		s := result.Shape{Callers: 1000, Conns: 2, Payload: 581, Servers: 1, Clients: 1, Hosts: 1, Seconds: 5}
		change(&s)
		return s
	}
	var say []result.Shape
	for _, callers := range []int{1, 100, 500, 1000, 2000, 5000} {
		say = append(say, shape(func(s *result.Shape) { s.Callers = callers }))
	}
	say = append(say,
		shape(func(s *result.Shape) { s.Callers, s.Conns = 100, 0 }),
		shape(func(s *result.Shape) { s.Callers, s.SleepUS = 1000, 10_000 }),
		shape(func(s *result.Shape) { s.Callers, s.WorkUS = 100, 100 }),
		shape(func(s *result.Shape) { s.Callers, s.Payload = 100, 64 }),
		shape(func(s *result.Shape) { s.Callers, s.Payload = 100, 65_536 }),
		shape(func(s *result.Shape) { s.Callers, s.Payload = 16, 1_048_576 }),
		shape(func(s *result.Shape) { s.Callers, s.Rate = 1000, 20_000 }),
		shape(func(s *result.Shape) { s.Servers = 2 }),
		shape(func(s *result.Shape) { s.Hosts = 2 }),
	)
	return map[string][]result.Shape{
		"say": say,
		"add": {
			shape(func(s *result.Shape) { s.Callers, s.Conns, s.Payload = 1, 1, 0 }),
			shape(func(s *result.Shape) { s.Callers, s.Conns, s.Fresh, s.Payload = 1, 1, true, 0 }),
			shape(func(s *result.Shape) { s.Callers, s.Conns, s.Clients, s.Payload = 1, 1, 4, 0 }),
			shape(func(s *result.Shape) { s.Callers, s.Conns, s.Calls, s.Seconds, s.Payload = 1, 1, 1_000_000, 0, 0 }),
		},
	}
}

// sample is the document. It is the same each time.
func sample() *result.Document {
	random := rand.New(rand.NewPCG(1, 2))
	began := time.Date(2025, 11, 21, 9, 30, 0, 0, time.UTC)
	doc := &result.Document{
		Schema:  result.Schema,
		Command: []string{"go", "run", "./arena", "run", "--suite", "full", "--rounds", "3", "--json", "results.json"},
		Commit:  "none, a test made this up",
		Began:   began, Ended: began.Add(3*time.Hour + 17*time.Minute),
		Machine: result.Machine{
			CPU: "Sample processor, nothing was measured", Cores: 2, MemoryMiB: 24_576, OS: "Debian GNU/Linux 12", Kernel: "Linux 6.18",
			Tools: map[string]string{"go": "go1.26.8", "g++": "12.2.0", "java": "17.0.17", "mvn": "3.8.7"},
		},
		NotRun: []result.NotRun{
			{Peer: "kitex-tcp", Reason: "needs pkg:example, which is not installed"},
			{Peer: "thrift-cpp-simple", Reason: "serves one connection at a time: no shape of this run fits"},
		},
	}
	shapes := sampleShapes()
	for _, workload := range []string{"say", "add"} {
		for _, s := range shapes[workload] {
			for i := range samplePeers {
				if p := &samplePeers[i]; s.Fresh || s.Conns == 0 || p.shared {
					doc.Rows = append(doc.Rows, sampleRow(p, workload, s, random, began))
				}
			}
		}
	}
	sampleOddities(doc)
	doc.Codecs = sampleCodecs()
	return doc
}

// sampleRow makes up three rounds around what the peer would do under the shape.
func sampleRow(p *samplePeer, workload string, s result.Shape, random *rand.Rand, began time.Time) result.Row {
	r := result.Row{
		Peer: p.name, Framework: p.framework, Version: "v1.2.3", Language: p.language, Codec: p.codec,
		Settings: p.settings, Marks: p.marks, Workload: workload, Shape: s, Valid: true,
	}
	// One caller waits for a round trip, a thousand for the processors.
	waits := 25 + p.cpu*1.5
	rate := p.rate * float64(s.Callers) / (float64(s.Callers) + p.rate*waits/1e6*3)
	cpu := p.cpu * (1 + 4/math.Sqrt(float64(s.Callers)))
	if s.Conns == 0 {
		rate, cpu = min(rate, 30_000+rate*0.2), cpu*2.2
	}
	if s.Fresh {
		rate, cpu = rate*0.3, cpu*3
	}
	if s.Payload > 581 {
		more := 1 + float64(s.Payload)/6000
		rate, cpu = rate/more, cpu*more
	}
	if s.SleepUS > 0 {
		rate = min(rate, float64(s.Callers)*1e6/float64(s.SleepUS))
	}
	if s.WorkUS > 0 {
		rate, cpu = min(rate, 1.8e6/(float64(s.WorkUS)+cpu)), cpu+float64(s.WorkUS)
	}
	if s.Rate > 0 {
		rate = min(rate, s.Rate)
	}
	for i := range 3 {
		noise := 1 + 0.12*(random.Float64()-0.5)
		r.Rounds = append(r.Rounds, result.Round{
			Began: began.Add(time.Duration(i) * time.Minute), OtherShare: 0.04 * random.Float64(), Load: 1 + random.Float64(),
			Figures: sampleFigures(p, s, rate*noise, cpu/noise),
		})
	}
	sampleMedians(&r)
	return r
}

func sampleFigures(p *samplePeer, s result.Shape, rate, cpu float64) result.Figures {
	p50 := float64(s.Callers) / rate * 1e6 * 0.9
	some := func(v float64) *float64 { return &v }
	f := result.Figures{
		Calls: int64(rate * 5), SuccessRate: 1, CallsPerSecond: rate,
		MeanUS: p50 * 1.08, MinUS: p50 * 0.3, P50US: p50, P90US: p50 * 1.7, P99US: p50 * 2.4, P999US: p50 * 4.5, MaxUS: p50 * 11,
		CPUUS: cpu, ClientCPUUS: cpu * 0.58, ServerCPUUS: cpu * 0.42, ClientMiB: p.mib * 0.55, ServerMiB: p.mib * 0.45 * (1 + rate/1e7),
		WireBytes: some(1290 + p.cpu), ClientSyscalls: some(2 + p.cpu/40), ServerSyscalls: some(1 + p.cpu/50),
	}
	if p.language != "cpp" { // those of C++ count as sendmsg and recvmsg
		f.ClientReads, f.ClientWrites, f.ServerReads, f.ServerWrites = some(p.cpu/90), some(p.cpu/70), some(p.cpu/95), some(p.cpu/80)
	}
	return f
}

// sampleMedians sets the figures of the row from its three rounds, by their throughput.
func sampleMedians(r *result.Row) {
	rounds := slices.Clone(r.Rounds)
	slices.SortFunc(rounds, func(a, b result.Round) int { return int(a.CallsPerSecond - b.CallsPerSecond) })
	low, high := rounds[0].Figures, rounds[2].Figures
	r.Figures = rounds[1].Figures
	r.CallsPerSecondRange = [2]float64{low.CallsPerSecond, high.CallsPerSecond}
	r.CPURange = [2]float64{high.CPUUS, low.CPUUS}
	r.P50Range = [2]float64{high.P50US, low.P50US}
	r.P99Range = [2]float64{high.P99US, low.P99US}
}

// sampleOddities makes rows wrong, disturbed, failing now and then, and adds a published one.
func sampleOddities(doc *result.Document) {
	for i := range doc.Rows {
		r := &doc.Rows[i]
		switch {
		case r.Peer == "hprose" && r.Workload == "say":
			r.Valid, r.Wrong, r.SuccessRate = false, 12, 0.99
			for j := range r.Rounds {
				r.Rounds[j].Wrong = 4
			}
		case r.Peer == "dubbo-go-triple" && r.Shape.Callers >= 2000:
			message := "the client ended with exit status 1: connection refused"
			r.Valid, r.Figures, r.Errors = false, result.Figures{Errors: 310}, 310
			r.Rounds = []result.Round{{FirstError: message}, {FirstError: message}, {FirstError: message}}
			r.CallsPerSecondRange, r.CPURange, r.P50Range, r.P99Range = [2]float64{}, [2]float64{}, [2]float64{}, [2]float64{}
		case r.Peer == "motan":
			r.Rounds[1].Disturbed, r.Rounds[1].OtherShare = true, 0.083
		case r.Peer == "drpc" && r.Shape.Callers == 1000:
			r.Errors, r.SuccessRate = 3, 0.99999
			r.Rounds[0].FirstError = "stream terminated by the remote"
		}
	}
	for _, rate := range []float64{180_247, 186_219} {
		doc.Rows = append(doc.Rows, result.Row{
			Peer: fmt.Sprintf("published-%.0f", rate/1000), Framework: "example", Version: "1.0", Language: "go",
			Settings: "as its authors ran it", Published: "https://example.org/a_published_run?of=somebody", Workload: "say",
			Shape:   result.Shape{Callers: 1000, Conns: 2, Payload: 581, Servers: 1, Clients: 1, Hosts: 1},
			Figures: result.Figures{CallsPerSecond: rate},
		})
	}
}

func sampleCodecs() []result.Codec {
	codec := func(name, library, language string, anser bool, encode, decode float64, bytes int, allocs int64) result.Codec {
		return result.Codec{
			Name: name, Library: library, Language: language, Anser: anser, EncodeNS: encode, DecodeNS: decode, Bytes: bytes,
			EncodeAllocs: 1, DecodeAllocs: allocs, EncodeBytes: int64(bytes), DecodeBytes: int64(bytes) * 3,
		}
	}
	return []result.Codec{
		codec("protobuf (vtproto)", "vtprotobuf v0.6.0", "go", true, 106, 844, 581, 51),
		codec("protobuf", "google.golang.org/protobuf v1.36.12", "go", true, 394, 1352, 581, 52),
		codec("msgpack", "tinylib/msgp v1.6.5", "go", true, 86, 515, 712, 9),
		codec("JSON", "encoding/json", "go", true, 2100, 7800, 1301, 63),
		codec("gob", "encoding/gob", "go", false, 5200, 31_000, 1490, 310),
		codec("Thrift binary", "apache/thrift v0.25.0", "go", false, 900, 1900, 690, 55),
	}
}
