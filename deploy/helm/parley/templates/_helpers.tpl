{{- define "parley.name" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $full | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "parley.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "parley.labels" -}}
{{ include "parley.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "parley.serviceAccount" -}}
{{ default (include "parley.name" .) .Values.serviceAccount.name }}
{{- end }}

{{- /* The port of the metrics in the configuration; empty: there are none. */ -}}
{{- define "parley.metricsPort" -}}
{{- $config := fromYaml .Values.config -}}
{{- with $config.metrics }}{{ with .port }}{{ int . }}{{ end }}{{ end -}}
{{- end }}

{{- /* What the service would refuse, or what would silently not work, ends the rendering. */ -}}
{{- define "parley.check" -}}
{{- $config := fromYaml .Values.config -}}
{{- if hasKey $config "Error" }}{{ fail (printf "config: is not YAML: %s" $config.Error) }}{{ end -}}
{{- $redis := or (dig "redis" "url" "" $config) (dig "redis" "sentinels" list $config) (dig "redis" "cluster" list $config) (hasKey .Values.secret.files "REDIS_URL") -}}
{{- $several := or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) -}}
{{- if and $several (not $redis) }}{{ fail "replicas: more than one needs Redis: give redis.url, redis.sentinels or redis.cluster in config, REDIS_URL in secret.files, or replicas: 1" }}{{ end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}{{ fail "autoscaling.minReplicas: is more than maxReplicas" }}{{ end -}}
{{- if and .Values.serviceMonitor.enabled (not (include "parley.metricsPort" .)) }}{{ fail "serviceMonitor.enabled: config has no metrics: write metrics: { port: 9464, host: 0.0.0.0 } into it" }}{{ end -}}
{{- if and .Values.prometheusRule.enabled (not (include "parley.metricsPort" .)) }}{{ fail "prometheusRule.enabled: config has no metrics: write metrics: { port: 9464, host: 0.0.0.0 } into it" }}{{ end -}}
{{- if and (include "parley.metricsPort" .) (ne (dig "metrics" "host" "" $config) "0.0.0.0") }}{{ fail "config: metrics.host must be 0.0.0.0: Prometheus asks from another pod" }}{{ end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}{{ fail "ingress.hosts: name at least one" }}{{ end -}}
{{- range .Values.ingress.hosts }}
{{- if and $.Values.ingress.enabled (not (has . (dig "server" "allowedHosts" list $config))) }}{{ fail (printf "ingress.hosts: '%s' is not in server.allowedHosts of config: the service would refuse it" .) }}{{ end -}}
{{- end -}}
{{- $needed := add (int .Values.preStopSeconds) (int (dig "server" "drainTimeout" 30 $config)) 13 -}}
{{- if lt (int .Values.terminationGracePeriodSeconds) (int $needed) }}{{ fail (printf "terminationGracePeriodSeconds: must be at least %d: preStopSeconds, server.drainTimeout of config, and 13 seconds to close databases" $needed) }}{{ end -}}
{{- end }}
