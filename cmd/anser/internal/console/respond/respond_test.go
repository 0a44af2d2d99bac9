package respond_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		write  func(w http.ResponseWriter)
		status int
		body   string
	}{
		{func(w http.ResponseWriter) { respond.JSON(w, 200, []string{"<b>"}) }, 200, `["<b>"]`},
		{func(w http.ResponseWriter) { respond.JSON(w, 200, json.RawMessage("{")) }, 500, `{"error":"the answer cannot be encoded: json: error calling MarshalJSON for type json.RawMessage: unexpected end of JSON input","advice":"look at what the service sends, for example with \"anser call\""}`},
		{func(w http.ResponseWriter) { respond.Fail(w, 404, "there is none", "use another") }, 404, `{"error":"there is none","advice":"use another"}`},
		{func(w http.ResponseWriter) { respond.JSON(w, 200, "a\u202eb\u009b2Jä") }, 200, `"a\u202eb\u009b2Jä"`},
		{respond.Problem(400, "it is wrong", "").Write, 400, `{"error":"it is wrong"}`},
		{(&respond.Error{Status: 409, Text: "it has changed", Current: 7}).Write, 409, `{"error":"it has changed","current":7}`},
	} {
		w := httptest.NewRecorder()
		c.write(w)
		if w.Code != c.status || w.Body.String() != c.body+"\n" || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%d %q, headers %v: want %d %q", w.Code, w.Body, w.Header(), c.status, c.body)
		}
	}
}
