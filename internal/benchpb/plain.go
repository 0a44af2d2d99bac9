package benchpb

// Plain is BenchmarkMessage as a hand-written struct, for codecs without generated code.
type Plain struct {
	Field1   string   `json:"field1" msgpack:"field1"`
	Field9   string   `json:"field9" msgpack:"field9"`
	Field18  string   `json:"field18" msgpack:"field18"`
	Field80  bool     `json:"field80" msgpack:"field80"`
	Field81  bool     `json:"field81" msgpack:"field81"`
	Field2   int32    `json:"field2" msgpack:"field2"`
	Field3   int32    `json:"field3" msgpack:"field3"`
	Field280 int32    `json:"field280" msgpack:"field280"`
	Field6   int32    `json:"field6" msgpack:"field6"`
	Field22  int64    `json:"field22" msgpack:"field22"`
	Field4   string   `json:"field4" msgpack:"field4"`
	Field5   []uint64 `json:"field5" msgpack:"field5"`
	Field59  bool     `json:"field59" msgpack:"field59"`
	Field7   string   `json:"field7" msgpack:"field7"`
	Field16  int32    `json:"field16" msgpack:"field16"`
	Field130 int32    `json:"field130" msgpack:"field130"`
	Field12  bool     `json:"field12" msgpack:"field12"`
	Field17  bool     `json:"field17" msgpack:"field17"`
	Field13  bool     `json:"field13" msgpack:"field13"`
	Field14  bool     `json:"field14" msgpack:"field14"`
	Field104 int32    `json:"field104" msgpack:"field104"`
	Field100 int32    `json:"field100" msgpack:"field100"`
	Field101 int32    `json:"field101" msgpack:"field101"`
	Field102 string   `json:"field102" msgpack:"field102"`
	Field103 string   `json:"field103" msgpack:"field103"`
	Field29  int32    `json:"field29" msgpack:"field29"`
	Field30  bool     `json:"field30" msgpack:"field30"`
	Field60  int32    `json:"field60" msgpack:"field60"`
	Field271 int32    `json:"field271" msgpack:"field271"`
	Field272 int32    `json:"field272" msgpack:"field272"`
	Field150 int32    `json:"field150" msgpack:"field150"`
	Field23  int32    `json:"field23" msgpack:"field23"`
	Field24  bool     `json:"field24" msgpack:"field24"`
	Field25  int32    `json:"field25" msgpack:"field25"`
	Field78  bool     `json:"field78" msgpack:"field78"`
	Field67  int32    `json:"field67" msgpack:"field67"`
	Field68  int32    `json:"field68" msgpack:"field68"`
	Field128 int32    `json:"field128" msgpack:"field128"`
	Field129 string   `json:"field129" msgpack:"field129"`
	Field131 int32    `json:"field131" msgpack:"field131"`
}

// FilledPlain returns the same message as Filled.
func FilledPlain() *Plain {
	return &Plain{
		Field1:   Text,
		Field9:   Text,
		Field18:  Text,
		Field80:  true,
		Field81:  true,
		Field2:   100000,
		Field3:   100000,
		Field280: 100000,
		Field6:   100000,
		Field22:  100000,
		Field4:   Text,
		Field59:  true,
		Field7:   Text,
		Field16:  100000,
		Field130: 100000,
		Field12:  true,
		Field17:  true,
		Field13:  true,
		Field14:  true,
		Field104: 100000,
		Field100: 100000,
		Field101: 100000,
		Field102: Text,
		Field103: Text,
		Field29:  100000,
		Field30:  true,
		Field60:  100000,
		Field271: 100000,
		Field272: 100000,
		Field150: 100000,
		Field23:  100000,
		Field24:  true,
		Field25:  100000,
		Field78:  true,
		Field67:  100000,
		Field68:  100000,
		Field128: 100000,
		Field129: Text,
		Field131: 100000,
	}
}
