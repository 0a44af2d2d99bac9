package main

//go:generate env GOWORK=off go tool msgp -tests=false -io=false -o message_msgp.go

// Message is the message of the workload as a struct for the generator of msgp. Its fields are
// those of benchpb.Plain.
type Message struct {
	Field1   string   `msg:"field1"`
	Field9   string   `msg:"field9"`
	Field18  string   `msg:"field18"`
	Field80  bool     `msg:"field80"`
	Field81  bool     `msg:"field81"`
	Field2   int32    `msg:"field2"`
	Field3   int32    `msg:"field3"`
	Field280 int32    `msg:"field280"`
	Field6   int32    `msg:"field6"`
	Field22  int64    `msg:"field22"`
	Field4   string   `msg:"field4"`
	Field5   []uint64 `msg:"field5"`
	Field59  bool     `msg:"field59"`
	Field7   string   `msg:"field7"`
	Field16  int32    `msg:"field16"`
	Field130 int32    `msg:"field130"`
	Field12  bool     `msg:"field12"`
	Field17  bool     `msg:"field17"`
	Field13  bool     `msg:"field13"`
	Field14  bool     `msg:"field14"`
	Field104 int32    `msg:"field104"`
	Field100 int32    `msg:"field100"`
	Field101 int32    `msg:"field101"`
	Field102 string   `msg:"field102"`
	Field103 string   `msg:"field103"`
	Field29  int32    `msg:"field29"`
	Field30  bool     `msg:"field30"`
	Field60  int32    `msg:"field60"`
	Field271 int32    `msg:"field271"`
	Field272 int32    `msg:"field272"`
	Field150 int32    `msg:"field150"`
	Field23  int32    `msg:"field23"`
	Field24  bool     `msg:"field24"`
	Field25  int32    `msg:"field25"`
	Field78  bool     `msg:"field78"`
	Field67  int32    `msg:"field67"`
	Field68  int32    `msg:"field68"`
	Field128 int32    `msg:"field128"`
	Field129 string   `msg:"field129"`
	Field131 int32    `msg:"field131"`
}
