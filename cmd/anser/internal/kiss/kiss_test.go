package kiss_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/kiss"
)

const contacts = `// kiss rpc idl demo

// UserInfo is a person.
@message:UserInfo
{
	string phone:3;
	string userName:1;  // behind a field: not of the next one
	int age:2;
	// addresses, if any
	string[] addressList:4;
	UserInfo[] friends:5;
}

@message:contacts_{ UserInfo[] list:1; }

// Contacts finds people.
@service:AddressBook{
	// Find finds one.
	UserInfo find(UserInfo query);
	int count();
	UserInfo[] some(string prefix, int most);
}
`

func TestParse(t *testing.T) {
	f, err := kiss.Parse("a.kiss", []byte(strings.Replace(contacts, "contacts_", "Contacts", 1)))
	if err != nil {
		t.Fatal(err)
	}
	user := f.Messages[0]
	var names []string
	for i, field := range user.Fields {
		if field.Number != i+1 {
			t.Errorf("field %s stands at %d", field.Name, i)
		}
		names = append(names, field.Name)
	}
	if got := strings.Join(names, " "); got != "userName age phone addressList friends" {
		t.Errorf("the fields are %s", got)
	}
	if user.Doc != "UserInfo is a person." || user.Fields[3].Doc != "addresses, if any" || user.Fields[1].Doc != "" {
		t.Errorf("the comments are %q, %q, %q", user.Doc, user.Fields[3].Doc, user.Fields[1].Doc)
	}
	if got := user.Fields[4].At.String(); got != "a.kiss:11:13" {
		t.Errorf("friends is at %s", got)
	}
	book := f.Services[0]
	if book.Doc != "Contacts finds people." || book.Methods[0].Doc != "Find finds one." || book.Methods[0].Tuple() || !book.Methods[1].Tuple() || len(book.Methods[2].Args) != 2 {
		t.Errorf("the service is %+v", book)
	}
	schema := f.Schema()
	if err := schema.Check(); err != nil {
		t.Fatal(err)
	}
	if got := schema.Message("UserInfo").Fields[4].Type.String(); got != "repeated UserInfo" {
		t.Errorf("friends is %s", got)
	}
	if m := schema.Service("AddressBook").Method("some"); m.Request != "AddressBook.some.Args" {
		t.Errorf("some is %+v", m)
	}
}

func TestMistakes(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"message:A{}", `a.kiss:1:1: want "@" before message or service, not "message"`},
		{"@struct:A{}", `a.kiss:1:2: "struct" is unknown: a definition begins with @message: or @service:`},
		{"@message A{}", `a.kiss:1:10: want ":" after "message", not "A"`},
		{"@message:{}", `want the name of the message, not "{"`},
		{"@message:A", `want "{" after the name of message A, not the end of the file`},
		{"@message:A{ int a; }", `a.kiss:1:18: want ":" and a number after field a, not ";"`},
		{"@message:A{ int a:0; }", "want the number of field a, from 1, not \"0\""},
		{"@message:A{ int a:1 }", `want ";" after field a, not "}"`},
		{"@message:A{ int[3] a:1; }", "arrays have any length"},
		{"@message:a{ int a:1; }", "message a must begin with a capital letter"},
		{"@message:A{ int a:1; int b:1; }", "field b has the number 1, which field a has already"},
		{"@message:A{ int a:2; }", "message A has no field with the number 1"},
		{"@message:A{ int a:1; int b:3; int c:4; }", "message A has no field with the number 2"},
		{"@message:A{ int a:1; int a:2; }", "message A has two fields a"},
		{"@message:A{ B b:1; }", "a.kiss:1:13: there is no type and no message B"},
		{"@message:A{} @message:A{}", "message A: the name is taken"},
		{"@message:A{} @service:A{}", "service A: the name is taken"},
		{"@service:S{ int f }", `want "(" after the name of function f, not "}"`},
		{"@service:S{ int f(int a int b); }", `want "," or ")" after an argument, not "int"`},
		{"@service:S{ int f(int a) }", `want ";" after function f, not "}"`},
		{"@service:S{ int f(int a); int f(int a); }", "service S has two functions f"},
		{"@service:S{ int f(int a, int a); }", "function f has two arguments a"},
		{"@service:S{ void f(int a); }", "there is no type and no message void"},
		{"@message:A{ B b:1;\n C c:2; }", "a.kiss:2:2: there is no type and no message C"},
		{"\x00", `want "@"`},
	} {
		_, err := kiss.Parse("a.kiss", []byte(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.text, err, test.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(contacts)
	f.Add("@message:A{ int a:1; }")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := kiss.Parse("a.kiss", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "a.kiss:") {
				t.Errorf("the error has no place: %v", err)
			}
			return
		}
		if err := file.Schema().Check(); err != nil {
			t.Error(err)
		}
	})
}
