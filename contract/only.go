package contract

import "slices"

// Only returns the part of the schema about some services: a copy with nothing but these and the
// messages and enums that their methods use, without positions. It returns nil if one of the
// services does not exist.
func (s *Schema) Only(services ...string) *Schema {
	out := &Schema{Kind: s.Kind}
	used := make(map[string]bool)
	for _, name := range services {
		v := s.Service(name)
		if v == nil {
			return nil
		}
		c := *v
		c.At, c.Methods = Position{}, slices.Clone(v.Methods)
		for i := range c.Methods {
			m := &c.Methods[i]
			m.At = Position{}
			s.use(m.Request, used)
			s.use(m.Reply, used)
		}
		out.Services = append(out.Services, c)
	}
	for _, m := range s.Messages {
		if !used[m.Name] {
			continue
		}
		m.At, m.Fields = Position{}, slices.Clone(m.Fields)
		for i := range m.Fields {
			m.Fields[i].At = Position{}
		}
		out.Messages = append(out.Messages, m)
	}
	for _, e := range s.Enums {
		if !used[e.Name] {
			continue
		}
		e.At, e.Values = Position{}, slices.Clone(e.Values)
		for i := range e.Values {
			e.Values[i].At = Position{}
		}
		out.Enums = append(out.Enums, e)
	}
	return out
}

// Add adds the services, messages and enums of another schema. Messages and enums that s has
// already are left out: the same type can be in the schemas of several services.
func (s *Schema) Add(other *Schema) {
	s.Services = append(s.Services, other.Services...)
	for _, m := range other.Messages {
		if s.Message(m.Name) == nil {
			s.Messages = append(s.Messages, m)
		}
	}
	for _, e := range other.Enums {
		if s.Enum(e.Name) == nil {
			s.Enums = append(s.Enums, e)
		}
	}
}

// Merge adds the services, messages and enums of another schema. Of a service that s has already,
// the methods are added that it does not have.
func (s *Schema) Merge(other *Schema) {
	rest := *other
	rest.Services = nil
	for _, v := range other.Services {
		have := s.Service(v.Name)
		if have == nil {
			rest.Services = append(rest.Services, v)
			continue
		}
		for _, m := range v.Methods {
			if have.Method(m.Name) == nil {
				have.Methods = append(have.Methods, m)
			}
		}
	}
	s.Add(&rest)
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
