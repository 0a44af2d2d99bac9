package kiss

import "github.com/anser-rpc/anser/contract"

// Schema returns the contract of the file. Fields are told apart by their names: on the wire a
// message is a map in MessagePack or an object in JSON.
func (f *File) Schema() *contract.Schema {
	s := &contract.Schema{Kind: contract.Kiss}
	for _, m := range f.Messages {
		c := contract.Message{Name: m.Name, Doc: m.Doc, Form: contract.ByName, At: m.At}
		for _, field := range m.Fields {
			c.Fields = append(c.Fields, contract.Field{Name: field.Name, Doc: field.Doc, Number: int32(field.Number), Type: field.Type.schema(), At: field.At})
		}
		s.Messages = append(s.Messages, c)
	}
	for _, v := range f.Services {
		c := contract.Service{Name: v.Name, Doc: v.Doc, At: v.At}
		for _, m := range v.Methods {
			method := contract.Method{Name: m.Name, Doc: m.Doc, At: m.At}
			if m.Tuple() {
				method.Request, method.Reply = v.Name+"."+m.Name+".Args", v.Name+"."+m.Name+".Results"
				args := contract.Message{Name: method.Request, Form: contract.InOrder}
				for _, a := range m.Args {
					args.Fields = append(args.Fields, contract.Field{Name: a.Name, Type: a.Type.schema()})
				}
				results := contract.Message{Name: method.Reply, Form: contract.InOrder, Fields: []contract.Field{{Name: "result1", Type: m.Reply.schema()}}}
				s.Messages = append(s.Messages, args, results)
			} else {
				method.Request, method.Reply = m.Args[0].Type.Name, m.Reply.Name
			}
			c.Methods = append(c.Methods, method)
		}
		s.Services = append(s.Services, c)
	}
	return s
}

// Tuple reports whether the function takes or returns anything but one message.
func (m *Method) Tuple() bool {
	one := func(t Type) bool { return t.Message && !t.Array }
	return len(m.Args) != 1 || !one(m.Args[0].Type) || !one(m.Reply)
}

func (t Type) schema() contract.Type {
	c := contract.Type{Name: Scalars[t.Name], Repeated: t.Array}
	if t.Message {
		c.Name, c.Of = "message", t.Name
	}
	return c
}
