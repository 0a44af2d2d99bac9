package contract

// Only returns the schema of one service: a copy with nothing but the service and the messages and
// enums that its methods use, without positions. It returns nil if there is no such service.
func (s *Schema) Only(service string) *Schema {
	v := s.Service(service)
	if v == nil {
		return nil
	}
	used := map[string]bool{}
	for i := range v.Methods {
		s.use(v.Methods[i].Request, used)
		s.use(v.Methods[i].Reply, used)
	}
	out := &Schema{Kind: s.Kind}
	copied := *v
	copied.At = Position{}
	copied.Methods = append([]Method(nil), v.Methods...)
	for i := range copied.Methods {
		copied.Methods[i].At = Position{}
	}
	out.Services = []Service{copied}
	for _, m := range s.Messages {
		if !used[m.Name] {
			continue
		}
		m.At = Position{}
		m.Fields = append([]Field(nil), m.Fields...)
		for i := range m.Fields {
			m.Fields[i].At = Position{}
		}
		out.Messages = append(out.Messages, m)
	}
	for _, e := range s.Enums {
		if !used[e.Name] {
			continue
		}
		e.At = Position{}
		e.Values = append([]EnumValue(nil), e.Values...)
		for i := range e.Values {
			e.Values[i].At = Position{}
		}
		out.Enums = append(out.Enums, e)
	}
	return out
}

// use marks the message or enum and all that it contains.
func (s *Schema) use(name string, used map[string]bool) {
	if name == "" || used[name] {
		return
	}
	used[name] = true
	m := s.Message(name)
	if m == nil {
		return
	}
	for _, f := range m.Fields {
		s.use(f.Type.Of, used)
	}
}
