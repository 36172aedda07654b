package dialect

import "strings"

// requestIDHeaders are where servers and gateways name a response, the one
// nearest to the model first.
var requestIDHeaders = [...]string{
	"x-request-id",     // OpenAI and many others
	"request-id",       // Anthropic
	"x-amzn-requestid", // AWS
	"apim-request-id",  // Azure
	"cf-aig-log-id",    // AI Gateway
	"cf-ray",           // Cloudflare
}

// cacheHeaders say, with a value that begins with HIT, that a gateway answered
// out of its own cache and asked no model.
var cacheHeaders = [...]string{
	"cf-aig-cache-status",
	"helicone-cache",
	"x-portkey-cache-status",
}

// headerInfo reads what the header of a response says about it.
func headerInfo(h Header) Info {
	var info Info
	if h == nil {
		return info
	}
	for _, name := range requestIDHeaders {
		if id := h.Get(name); id != "" && len(id) <= 256 {
			info.RequestID = wellFormed(id)
			break
		}
	}
	for _, name := range cacheHeaders {
		if v := h.Get(name); len(v) >= 3 && strings.EqualFold(v[:3], "hit") {
			info.Cached = true
		}
	}
	return info
}
