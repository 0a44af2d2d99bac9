package report_test

import "github.com/anser-rpc/anser/arena/result"

// hostile is text that becomes markup, a script or another cell wherever it is not escaped.
const hostile = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>|`**_[x](javascript:alert(3))</style></svg>'{{.}}${1}\n# head"

// hostileDocument has it in every text.
func hostileDocument() *result.Document {
	doc := sample()
	doc.Commit, doc.Command = hostile, []string{"go", hostile}
	doc.Machine.CPU, doc.Machine.OS, doc.Machine.Kernel = hostile, hostile, hostile
	doc.Machine.Tools = map[string]string{hostile: hostile}
	doc.NotRun = []result.NotRun{{Peer: hostile, Reason: hostile}}
	for i := range doc.Rows {
		r := &doc.Rows[i]
		switch i % 7 {
		case 0:
			r.Peer, r.Framework, r.Version, r.Language, r.Codec, r.Settings = hostile, hostile, hostile, hostile, hostile, hostile
			r.Marks = []string{hostile}
		case 1:
			r.Published = "javascript:alert(4)"
		case 2:
			r.Valid, r.Rounds = false, []result.Round{{FirstError: hostile}}
		case 3:
			r.Published = hostile
		}
	}
	doc.Rows[len(doc.Rows)-3].Workload = hostile
	doc.Codecs[0].Name, doc.Codecs[0].Library, doc.Codecs[0].Language = hostile, hostile, hostile
	return doc
}
