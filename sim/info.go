package sim

// What operators read from a running engine: SGLang's /v1/models, /server_info
// and /metrics. One engine stands for both nodes of a prefill and decode pair;
// ?role=prefill or ?role=decode asks for one node, as its own address would.
// max_model_len is the window, which no pool caps: that difference is how the
// incident could have been seen beforehand.

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/auditproxy/auditproxy/gpukv"
)

const (
	rolePrefill   = "prefill"
	roleDecode    = "decode"
	gibibyte      = 1 << 30
	slotBytes     = 44_928 // KV bytes of a token when the cluster doesn't say
	sglangVersion = "0.5.18"
)

func (e *Engine) models(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID          string `json:"id"`
		Object      string `json:"object"`
		Created     int64  `json:"created"`
		OwnedBy     string `json:"owned_by"`
		Root        string `json:"root"`
		MaxModelLen int    `json:"max_model_len"`
	}
	writeJSON(w, http.StatusOK, struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", []model{{
		ID: e.o.Model, Object: "model", OwnedBy: "sglang", Root: e.o.Model, MaxModelLen: e.Stats().Window,
	}}})
}

type memoryUsage struct {
	KVCache       float64 `json:"kvcache"` // GiB
	TokenCapacity int     `json:"token_capacity"`
}

type internalState struct {
	MemoryUsage memoryUsage `json:"memory_usage"`
	Running     int         `json:"num_running_reqs"`
	Queued      int         `json:"num_queue_reqs"`
}

type nodeInfo struct {
	ModelPath       string          `json:"model_path"`
	ServedModelName string          `json:"served_model_name"`
	Mode            string          `json:"disaggregation_mode"`
	PageSize        int             `json:"page_size"`
	ContextLength   int             `json:"context_length"`
	MaxTotalTokens  int             `json:"max_total_num_tokens"`
	MaxReqInputLen  int             `json:"max_req_input_len"`
	Version         string          `json:"version"`
	InternalStates  []internalState `json:"internal_states"`
}

func (e *Engine) nodeInfo(role string, s *gpukv.Stats) nodeInfo {
	r := nodeStats(role, s)
	bytes := e.o.Cluster.SlotBytes
	if bytes == 0 {
		bytes = slotBytes
	}
	return nodeInfo{
		ModelPath:       e.o.Model,
		ServedModelName: e.o.Model,
		Mode:            role,
		PageSize:        s.PageSize,
		ContextLength:   s.Window,
		MaxTotalTokens:  r.MaxTotalTokens,
		MaxReqInputLen:  r.MaxReqInputLen,
		Version:         sglangVersion,
		InternalStates: []internalState{{
			MemoryUsage: memoryUsage{float64(r.MaxTotalTokens) * float64(bytes) / gibibyte, r.MaxTotalTokens},
			Running:     r.Running,
			Queued:      r.Queued,
		}},
	}
}

func nodeStats(role string, s *gpukv.Stats) *gpukv.RoleStats {
	if role == rolePrefill {
		return &s.Prefill
	}
	return &s.Decode
}

// serverInfo answers with one node's information, or with a list for each role
// as SGLang's load balancer does.
func (e *Engine) serverInfo(w http.ResponseWriter, r *http.Request) {
	s := e.Stats()
	switch role := r.FormValue("role"); role {
	case rolePrefill, roleDecode:
		writeJSON(w, http.StatusOK, e.nodeInfo(role, &s))
	case "":
		p, d := e.nodeInfo(rolePrefill, &s), e.nodeInfo(roleDecode, &s)
		writeJSON(w, http.StatusOK, struct {
			Prefill        []nodeInfo      `json:"prefill"`
			Decode         []nodeInfo      `json:"decode"`
			InternalStates []internalState `json:"internal_states"`
		}{[]nodeInfo{p}, []nodeInfo{d}, append(p.InternalStates, d.InternalStates...)})
	default:
		refuseOpenAI(w, badRequest("role: want prefill or decode"))
	}
}

// gauges are the metrics that no node counts itself.
type gauges struct {
	firstToken prometheus.Histogram
	latency    prometheus.Histogram
	refused    prometheus.Counter
	responses  *prometheus.CounterVec
}

func newGauges() gauges {
	buckets := prometheus.ExponentialBuckets(0.001, 2, 18)
	return gauges{
		firstToken: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sglang:time_to_first_token_seconds", Help: "Time from a request to its first token.", Buckets: buckets,
		}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sglang:e2e_request_latency_seconds", Help: "Time from a request to the end of its answer.", Buckets: buckets,
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sim:refused_requests_total", Help: "Requests answered with an error of the scheduler.",
		}),
		responses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sglang:http_responses_total", Help: "HTTP responses by route and status.",
		}, []string{"endpoint", "status_code"}),
	}
}

func (g *gauges) response(route string, status int) {
	g.responses.WithLabelValues(route, strconv.Itoa(status)).Inc()
}

func (e *Engine) metrics(w http.ResponseWriter, r *http.Request) {
	reg := prometheus.NewRegistry()
	roles := []string{rolePrefill, roleDecode}
	if role := r.FormValue("role"); role != "" {
		if role != rolePrefill && role != roleDecode {
			refuseOpenAI(w, badRequest("role: want prefill or decode"))
			return
		}
		roles = []string{role}
	} else {
		reg.MustRegister(e.gauges.firstToken, e.gauges.latency, e.gauges.refused, e.gauges.responses)
	}
	reg.MustRegister(&collector{e, roles})
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// collector exports the stats of the nodes under SGLang's names.
type collector struct {
	e     *Engine
	roles []string
}

// metric is one gauge or counter of a node.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(s *gpukv.Stats, r *gpukv.RoleStats) float64
}

func nodeMetric(name, help string, kind prometheus.ValueType, value func(*gpukv.Stats, *gpukv.RoleStats) float64) metric {
	return metric{prometheus.NewDesc(name, help, []string{"model_name", "engine_type"}, nil), kind, value}
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

var nodeMetrics = []metric{
	nodeMetric("sglang:max_total_num_tokens", "Tokens that the KV pool holds.", gauge,
		func(_ *gpukv.Stats, r *gpukv.RoleStats) float64 { return float64(r.MaxTotalTokens) }),
	nodeMetric("sglang:context_len", "Advertised context window in tokens.", gauge,
		func(s *gpukv.Stats, _ *gpukv.RoleStats) float64 { return float64(s.Window) }),
	nodeMetric("sglang:page_size", "Tokens in a page.", gauge,
		func(s *gpukv.Stats, _ *gpukv.RoleStats) float64 { return float64(s.PageSize) }),
	nodeMetric("sglang:num_pages", "Pages of the KV pool.", gauge,
		func(_ *gpukv.Stats, r *gpukv.RoleStats) float64 { return float64(r.Pages) }),
	nodeMetric("sglang:num_used_tokens", "Tokens of the pages that requests own.", gauge,
		func(s *gpukv.Stats, r *gpukv.RoleStats) float64 { return float64(r.UsedPages * s.PageSize) }),
	nodeMetric("sglang:token_usage", "Share of the KV pool that requests own.", gauge,
		func(_ *gpukv.Stats, r *gpukv.RoleStats) float64 { return float64(r.UsedPages) / float64(r.Pages) }),
	nodeMetric("sglang:num_running_reqs", "Requests in the running batch.", gauge,
		func(_ *gpukv.Stats, r *gpukv.RoleStats) float64 { return float64(r.Running) }),
	nodeMetric("sglang:num_queue_reqs", "Requests in the queues.", gauge,
		func(_ *gpukv.Stats, r *gpukv.RoleStats) float64 { return float64(r.Queued) }),
	nodeMetric("sglang:prompt_tokens_total", "Prompt tokens of finished requests.", counter,
		func(_ *gpukv.Stats, r *gpukv.RoleStats) float64 { return float64(r.PromptTokens) }),
	nodeMetric("sglang:generation_tokens_total", "Generated tokens.", counter,
		func(_ *gpukv.Stats, r *gpukv.RoleStats) float64 { return float64(r.GeneratedTokens) }),
	nodeMetric("sglang:num_requests_total", "Finished requests.", counter,
		func(_ *gpukv.Stats, r *gpukv.RoleStats) float64 { return float64(r.Finished) }),
	nodeMetric("sglang:num_aborted_requests_total", "Requests retired or rejected.", counter,
		func(_ *gpukv.Stats, r *gpukv.RoleStats) float64 { return float64(r.Refused) }),
	nodeMetric("sim:pool_wraps_total", "Times the allocator went round the pool.", counter,
		func(_ *gpukv.Stats, r *gpukv.RoleStats) float64 { return float64(r.Wraps) }),
	nodeMetric("sim:zeroed_bytes_total", "KV bytes cleared before reuse.", counter,
		func(_ *gpukv.Stats, r *gpukv.RoleStats) float64 { return float64(r.BytesZeroed) }),
}

var (
	labelsDropped = prometheus.NewDesc("sim:labels_dropped_total", "Ground-truth labels dropped for newer ones.", nil, nil)
	originsGone   = prometheus.NewDesc("sim:origins_dropped_total", "Runs of words that the ground truth forgot.", nil, nil)
	pieces        = prometheus.NewDesc("sim:vocabulary_pieces", "Pieces of text that the vocabulary numbers.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range nodeMetrics {
		ch <- m.desc
	}
	ch <- labelsDropped
	ch <- originsGone
	ch <- pieces
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.e.Stats()
	for _, role := range c.roles {
		r := nodeStats(role, &s)
		for _, m := range nodeMetrics {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&s, r), c.e.o.Model, role)
		}
	}
	ch <- prometheus.MustNewConstMetric(labelsDropped, counter, float64(c.e.LabelsDropped()))
	ch <- prometheus.MustNewConstMetric(originsGone, counter, float64(c.e.origins.dropped.Load()))
	ch <- prometheus.MustNewConstMetric(pieces, gauge, float64(c.e.vocabulary.Len()))
}
