package pbrt

import "google.golang.org/protobuf/proto"

// AppendMessage appends a message that may have no generated code, without its length.
func (s *State) AppendMessage(b []byte, m proto.Message) []byte {
	if m, ok := m.(Message); ok {
		return m.AnserProtobuf(s, b)
	}
	return s.AppendStandard(b, m)
}

// AppendStandard appends a message with the standard library.
func (s *State) AppendStandard(b []byte, m proto.Message) []byte {
	out, err := proto.MarshalOptions{AllowPartial: true}.MarshalAppend(b, m)
	if err != nil {
		if s.Err == nil {
			s.Err = err
		}
		return b
	}
	s.Partial = s.Partial || proto.CheckInitialized(m) != nil
	return out
}

// DecodeMessage merges b into a message that may have no generated code.
func (s *State) DecodeMessage(b []byte, m proto.Message) bool {
	if m, ok := m.(Message); ok {
		m.AnserProtobuf(s, b)
		return s.Err == nil
	}
	if s.Depth <= 0 {
		return s.tooDeep()
	}
	return s.decode(b, m, s.Depth)
}

// DecodeFields merges b, which are fields of m, into m with the standard library. They are on the
// level of the message that is being decoded.
func (s *State) DecodeFields(b []byte, m proto.Message) bool {
	return s.decode(b, m, s.Depth+1)
}

func (s *State) decode(b []byte, m proto.Message, depth int) bool {
	err := proto.UnmarshalOptions{Merge: true, AllowPartial: true, RecursionLimit: depth}.Unmarshal(b, m)
	if err != nil {
		if s.Err == nil {
			s.Err = err
		}
		return false
	}
	s.Partial = s.Partial || proto.CheckInitialized(m) != nil
	return true
}

// OwnMessage performs OpOwn on a message that may have no generated code.
func (s *State) OwnMessage(m proto.Message) {
	if m, ok := m.(Message); ok {
		m.AnserProtobuf(s, nil)
	}
}
