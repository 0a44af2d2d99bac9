package report

import "strings"

// languageName is how a person writes the language of a peer.json.
func languageName(language string) string {
	switch strings.ToLower(language) {
	case "go":
		return "Go"
	case "java":
		return "Java"
	case "cpp", "c++":
		return "C++"
	case "d":
		return "D"
	case "rust":
		return "Rust"
	case "python":
		return "Python"
	case "javascript", "js", "node":
		return "JavaScript"
	case "":
		return "unknown"
	}
	return language
}

// languageClass is the class of its colour in the page and in the charts. The name is always shown
// next to the colour, so that two languages may share one.
func languageClass(language string) string {
	switch strings.ToLower(language) {
	case "go":
		return "l-go"
	case "java":
		return "l-java"
	case "cpp", "c++":
		return "l-cpp"
	}
	return "l-other"
}
