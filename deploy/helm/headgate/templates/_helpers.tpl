{{/* Names of Services and of pods' labels may have 63 characters, and the longest of ours adds 23: a longer one is cut, and told
     from others that begin alike by a digest. */}}
{{- define "headgate.name" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := printf "%s-%s" .Release.Name $name -}}
{{- if .Values.fullnameOverride }}{{ $full = .Values.fullnameOverride }}
{{- else if contains $name .Release.Name }}{{ $full = .Release.Name }}{{ end -}}
{{- if gt (len $full) 40 }}{{ $full = printf "%s-%s" (trunc 31 $full | trimSuffix "-") (sha256sum $full | trunc 8) }}{{ end -}}
{{ $full }}
{{- end }}

{{/* The name of a cluster-scoped object: two releases of one name in two namespaces do not share it. */}}
{{- define "headgate.clusterName" -}}
{{ printf "%s-%s" .Release.Namespace (include "headgate.name" .) }}
{{- end }}

{{- define "headgate.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{- define "headgate.labels" -}}
{{ include "headgate.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with include "headgate.ownLabels" . }}
{{ . }}
{{- end }}
{{- end }}

{{/* metadata of an object of the release's namespace: root, name (a suffix), component */}}
{{- define "headgate.metadata" -}}
name: {{ include "headgate.name" .root }}{{ with .name }}-{{ . }}{{ end }}
namespace: {{ .root.Release.Namespace }}
labels: {{- include "headgate.labels" . | nindent 2 }}
{{- end }}

{{/* What a null in the values stands for; "true" or nothing where it is a switch. */}}
{{- define "headgate.has" -}}
{{- $mode := .root.Values.mode -}}
{{- $by := dict
  "nats" (list "all-in-one" "central")
  "translator" (list "all-in-one" "central" "tenant")
  "watcher" (list "all-in-one" "edge" "tenant")
  "gateway" (list "all-in-one" "edge" "tenant")
  "ingressClass" (list "all-in-one" "edge")
  "clusterScoped" (list "all-in-one" "edge")
  "tls" (list "central")
-}}
{{- $given := dict
  "nats" .root.Values.nats.enabled
  "gateway" .root.Values.gateway.enabled
  "ingressClass" .root.Values.ingressClass.create
  "clusterScoped" .root.Values.watchClusterScoped
  "tls" .root.Values.nats.tls.enabled
-}}
{{- $set := get $given .what -}}
{{- if kindIs "bool" $set }}{{ if $set }}true{{ end }}
{{- else if has $mode (get $by .what) }}true
{{- else if and (has .what (list "nats" "tls")) .root.Values.nats.hub.urls }}true
{{- else if and (eq .what "tls") (contains "tls://" .root.Values.nats.url) }}true{{ end -}}
{{- end }}

{{- define "headgate.cluster" -}}
{{- if .Values.cluster }}{{ .Values.cluster }}{{ else if eq .Values.mode "tenant" }}{{ .Release.Namespace }}{{ else }}local{{ end -}}
{{- end }}

{{- define "headgate.namespaces" -}}
{{- if .Values.namespaces }}{{ toJson .Values.namespaces }}
{{- else if eq .Values.mode "tenant" }}{{ toJson (list .Release.Namespace) }}
{{- else }}[]{{ end -}}
{{- end }}

{{/* The image of a component: by digest where one is given, as tags may be moved. */}}
{{- define "headgate.image" -}}
{{- $own := default dict (get .root.Values.image.of .image) -}}
{{- $name := default (printf "%s/%s" .root.Values.image.registry .image) $own.repository -}}
{{- if $own.digest }}{{ $name }}@{{ $own.digest }}
{{- else }}{{ $name }}:{{ default (default .root.Chart.AppVersion .root.Values.image.tag) $own.tag }}{{ end -}}
{{- end }}

{{- define "headgate.watcherAccount" -}}
{{ default (printf "%s-watcher" (include "headgate.name" .)) .Values.watcher.serviceAccount.name }}
{{- end }}

{{- define "headgate.generated" -}}
{{ include "headgate.name" . }}-generated
{{- end }}

{{- define "headgate.sealingSecret" -}}
{{ default (include "headgate.generated" .) .Values.sealing.existingSecret }}
{{- end }}

{{/* Whether the translators of this release order certificates. */}}
{{- define "headgate.orders" -}}
{{- $asked := or .Values.acme.email .Values.acme.resolvers (ne .Values.acme.directory "letsencrypt") -}}
{{- if and $asked (include "headgate.has" (dict "root" . "what" "translator")) }}true{{ end -}}
{{- end }}

{{- define "headgate.accountSecret" -}}
{{ default (include "headgate.generated" .) .Values.acme.existingSecret }}
{{- end }}

{{/* The gateways' public keys, for who seals to them: {settings, volume, mount}. */}}
{{- define "headgate.publicKeys" -}}
{{- $keys := list }}{{ $items := list }}
{{- range .Values.sealing.publicKeys }}
{{- $keys = append $keys (printf "/etc/headgate/sealing/%s" .) }}
{{- $items = append $items (dict "key" . "path" .) }}
{{- end }}
{{- $volume := dict "name" "sealing" "secret" (dict "secretName" (include "headgate.sealingSecret" .) "items" $items "defaultMode" 288) }}
{{- dict "keys" $keys "volume" $volume "mount" (dict "name" "sealing" "mountPath" "/etc/headgate/sealing" "readOnly" true) | toJson }}
{{- end }}

{{/* What the Job makes: of "pair", "account" and "passwords" what is needed. */}}
{{- define "headgate.made" -}}
{{- $made := list -}}
{{- if and (include "headgate.orders" .) (not .Values.acme.existingSecret) }}{{ $made = append $made "account" }}{{ end -}}
{{- $sealed := include "headgate.has" (dict "root" . "what" "gateway") -}}
{{- if and $sealed (not .Values.sealing.existingSecret) }}{{ $made = append $made "pair" }}{{ end -}}
{{- if and (include "headgate.has" (dict "root" . "what" "nats")) .Values.nats.auth.enabled (not .Values.nats.auth.existingSecret) -}}
{{- $made = append $made "passwords" -}}
{{- end -}}
{{ join "," $made }}
{{- end }}

{{- define "headgate.webhookName" -}}
{{ include "headgate.name" . }}-admission.{{ .Release.Namespace }}.svc
{{- end }}

{{/* A setting's value as text: lists with commas, maps as JSON, whole numbers without an exponent. */}}
{{- define "headgate.text" -}}
{{- if kindIs "slice" . }}{{ $texts := list }}{{ range . }}{{ $texts = append $texts (include "headgate.text" .) }}{{ end }}{{ join "," $texts }}
{{- else if kindIs "map" . }}{{ toJson . }}
{{- else if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}
{{- else }}{{ toString . }}{{ end -}}
{{- end }}

{{/* Settings as variables: those of the component, then the user's for all services, then the user's for this one. */}}
{{- define "headgate.variables" -}}
{{- $settings := mergeOverwrite (dict) .settings (deepCopy .root.Values.settings) (deepCopy (get .root.Values .component).settings) -}}
{{- range $name, $value := $settings }}
- name: HEADGATE_{{ upper $name }}
  value: {{ include "headgate.text" $value | quote }}
{{- end }}
{{- end }}

{{- define "headgate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "headgate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Where pods run: root, component, values */}}
{{- define "headgate.placement" -}}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
affinity: {{- toYaml (merge (deepCopy .values.affinity) (include "headgate.apart" . | fromYaml)) | nindent 2 }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "headgate.podMetadata" -}}
labels: {{- include "headgate.labels" . | nindent 2 }}
{{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $own := dict }}{{ if and .component (hasKey .root.Values .component) }}{{ $own = (get .root.Values .component).podAnnotations }}{{ end }}
{{- with mergeOverwrite (deepCopy .root.Values.podAnnotations) $own }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Replicas over nodes and zones, as far as possible. Not topologySpreadConstraints: one that names zones puts those that name
     nodes out of force where nodes have no zone. */}}
{{- define "headgate.apart" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - weight: 100
      podAffinityTerm:
        topologyKey: {{ . }}
        labelSelector:
          matchLabels: {{- include "headgate.selector" $ | nindent 12 }}
    {{- end }}
{{- end }}

{{- define "headgate.disruption" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "headgate.metadata" . | nindent 2 }}
spec:
  {{- if .minAvailable }}
  minAvailable: {{ .minAvailable }}
  {{- else }}
  maxUnavailable: {{ default 1 .maxUnavailable }}
  {{- end }}
  {{- with .unhealthyPodEvictionPolicy }}
  unhealthyPodEvictionPolicy: {{ . }}
  {{- end }}
  selector:
    matchLabels: {{- include "headgate.selector" . | nindent 6 }}
{{- end }}
