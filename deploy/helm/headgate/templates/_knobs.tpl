{{/*
What may be added to, or changed in, the pod and the workload of any component: watcher, translator, gateway, console, nats. Each template takes
root, component and what it is about; the values are those of the component.
*/}}

{{/* Labels of a component's objects besides those that select: of all components, then of this one. */}}
{{- define "headgate.ownLabels" -}}
{{- $labels := deepCopy .root.Values.commonLabels -}}
{{- if and .component (hasKey .root.Values .component) }}{{ $labels = mergeOverwrite $labels (get .root.Values .component).labels }}{{ end -}}
{{- with $labels }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/* Annotations of a component's workload. */}}
{{- define "headgate.ownAnnotations" -}}
{{- with (get .root.Values .component).annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* How many old ReplicaSets stay, and how long a pod has to be ready. */}}
{{- define "headgate.workload" -}}
{{- $values := get .root.Values .component -}}
{{- with $values.revisionHistoryLimit }}
revisionHistoryLimit: {{ . }}
{{- end }}
{{- with $values.minReadySeconds }}
minReadySeconds: {{ . }}
{{- end }}
{{- end }}

{{/* A field of a pod, or of a container, with what the values say of it laid over; a null there takes a line away. */}}
{{- define "headgate.over" -}}
{{- $kept := dict -}}
{{- range $name, $value := mergeOverwrite (.base | fromYaml) (deepCopy .over) }}{{ if not (kindIs "invalid" $value) }}{{ $_ := set $kept $name $value }}{{ end }}{{ end -}}
{{ toYaml $kept }}
{{- end }}

{{- define "headgate.network" -}}
{{- $values := get .root.Values .component -}}
{{- if $values.hostNetwork }}
hostNetwork: true
{{- end }}
{{- if or $values.dnsPolicy $values.hostNetwork }}
dnsPolicy: {{ default "ClusterFirstWithHostNet" $values.dnsPolicy }}
{{- end }}
{{- with $values.dnsConfig }}
dnsConfig: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.hostAliases }}
hostAliases: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with $values.initContainers }}
initContainers: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
