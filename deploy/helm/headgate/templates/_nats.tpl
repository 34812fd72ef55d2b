{{/* Whether the servers of this release are leaf nodes of a centre's, which store nothing; "true" or nothing. */}}
{{- define "headgate.isLeaf" -}}
{{- if .Values.nats.hub.urls }}true{{ end -}}
{{- end }}

{{- define "headgate.natsReplicas" -}}
{{ default (ternary 3 (ternary 2 1 (not (empty (include "headgate.isLeaf" .)))) (has .Values.mode (list "central" "all-in-one"))) .Values.nats.replicas | int }}
{{- end }}

{{/* Whether the servers of this release are a cluster, which keeps the streams together. */}}
{{- define "headgate.natsIsClustered" -}}
{{- if and (gt (include "headgate.natsReplicas" . | int) 1) (not (include "headgate.isLeaf" .)) }}true{{ end -}}
{{- end }}

{{- define "headgate.natsUrl" -}}
{{- if include "headgate.has" (dict "root" . "what" "nats") -}}
{{- $name := include "headgate.name" . -}}
{{- $scheme := ternary "tls" "nats" (not (empty (include "headgate.has" (dict "root" . "what" "tls")))) -}}
{{- $servers := list -}}
{{- range $i := until (include "headgate.natsReplicas" . | int) -}}
{{- $servers = append $servers (printf "%s://%s-nats-%d.%s-nats.%s.svc:4222" $scheme $name $i $name $.Release.Namespace) -}}
{{- end -}}
{{ join "," $servers }}
{{- else -}}
{{ required "nats.url: the NATS servers that this release uses, such as tls://nats.example:4222" .Values.nats.url }}
{{- end -}}
{{- end }}

{{/* The user of a service: root, role. A tenant's are those of its account, unless the servers are its own. */}}
{{- define "headgate.user" -}}
{{- $own := include "headgate.has" (dict "root" .root "what" "nats") -}}
{{- $given := get .root.Values.nats.auth.users .role -}}
{{- if $given }}{{ $given }}
{{- else if or (eq .role "watcher") (and (eq .root.Values.mode "tenant") (not $own)) }}{{ .role }}-{{ include "headgate.cluster" .root }}
{{- else }}{{ .role }}{{ end -}}
{{- end }}

{{/* Clusters whose watchers have a user at the servers of this release. */}}
{{- define "headgate.natsClusters" -}}
{{- $own := list (include "headgate.cluster" .) -}}
{{ toJson (ternary $own (default $own .Values.nats.clusters) (not (empty (include "headgate.isLeaf" .)))) }}
{{- end }}

{{/* Users of the servers of this release. */}}
{{- define "headgate.natsUsers" -}}
{{- $users := ternary (list "system" "gateway") (list "admin" "system" "translator" "gateway" "reader" "operator") (not (empty (include "headgate.isLeaf" .))) -}}
{{- range include "headgate.natsClusters" . | fromJsonArray }}{{ $users = append $users (printf "watcher-%s" .) }}{{ end -}}
{{- range .Values.nats.leafNodes.clusters }}{{ $users = append $users (printf "edge-%s" .) }}{{ end -}}
{{- range $tenant := .Values.nats.tenants }}
{{- range list "watcher" "translator" "gateway" "reader" "operator" "admin" }}{{ $users = append $users (printf "%s-%s" . $tenant.name) }}{{ end -}}
{{- end -}}
{{ toJson $users }}
{{- end }}

{{/* A name as part of a variable's. */}}
{{- define "headgate.variable" -}}
{{ . | upper | replace "-" "_" }}
{{- end }}

{{- define "headgate.passwordVariable" -}}
{{ include "headgate.variable" . }}_PASSWORD
{{- end }}

{{- define "headgate.natsSecret" -}}
{{- if .Values.nats.auth.existingSecret }}{{ .Values.nats.auth.existingSecret }}
{{- else if include "headgate.has" (dict "root" . "what" "nats") }}{{ include "headgate.generated" . }}
{{- else }}{{ required "nats.auth.existingSecret: the Secret with the passwords of these users" .Values.nats.auth.existingSecret }}{{ end -}}
{{- end }}

{{- define "headgate.natsServerSecret" -}}
{{- if .Values.nats.tls.certManager.enabled }}{{ include "headgate.name" . }}-nats-server
{{- else }}{{ required "nats.tls.serverSecret: the Secret with tls.crt, tls.key and ca.crt of the NATS servers; or have cert-manager make it (nats.tls.certManager)" .Values.nats.tls.serverSecret }}{{ end -}}
{{- end }}

{{- define "headgate.natsClientSecret" -}}
{{- if and .Values.nats.tls.certManager.enabled (not .Values.nats.tls.clientSecret) }}{{ include "headgate.name" . }}-nats-client
{{- else }}{{ required "nats.tls.clientSecret: the Secret with ca.crt, and with tls.crt and tls.key unless nats.tls.mutual is off" .Values.nats.tls.clientSecret }}{{ end -}}
{{- end }}

{{/* Whether the way to the centre is encrypted; "true" or nothing. */}}
{{- define "headgate.hubTls" -}}
{{- if contains "tls://" (join "," .Values.nats.hub.urls) }}true{{ end -}}
{{- end }}

{{- define "headgate.hubSecret" -}}
{{- if .Values.nats.hub.tlsSecret }}{{ .Values.nats.hub.tlsSecret }}
{{- else if include "headgate.has" (dict "root" . "what" "tls") }}{{ include "headgate.natsServerSecret" . }}
{{- else }}{{ required "nats.hub.tlsSecret: the Secret with ca.crt, tls.crt and tls.key for the centre" .Values.nats.hub.tlsSecret }}{{ end -}}
{{- end }}

{{/* Where the centre is, with login, as the servers read it from a variable: a list. */}}
{{- define "headgate.hubUrls" -}}
{{- $urls := list -}}
{{- range .Values.nats.hub.urls -}}
{{- $parts := splitn "://" 2 . -}}
{{- $urls = append $urls (printf "%s://edge-%s:$(HUB_PASSWORD)@%s" $parts._0 (include "headgate.cluster" $) $parts._1) -}}
{{- end -}}
{{ toJson $urls }}
{{- end }}

{{/* The rights of one role, of a file in which it is that of the cluster `local`: root, file, name */}}
{{- define "headgate.rightsOf" -}}
{{ .root.Files.Get (printf "files/nats/%s" .file) | replace "LOCAL" (include "headgate.variable" .name) | replace "local" .name }}
{{- end }}

{{/* Files beside the servers' configuration, which includes all of them, as a map. */}}
{{- define "headgate.natsFiles" -}}
{{- $files := dict -}}
{{- if .Values.nats.auth.enabled -}}
{{- if include "headgate.isLeaf" . -}}
{{- $_ := set $files "leaf-roles.conf" (include "headgate.rightsOf" (dict "root" . "file" "leaf-roles.conf" "name" (include "headgate.cluster" .))) -}}
{{- else -}}
{{- $_ := set $files "roles.conf" (.Files.Get "files/nats/roles.conf") -}}
{{- $watchers := include "headgate.natsClusters" . | fromJsonArray -}}
{{- range .Values.nats.tenants }}{{ $watchers = append $watchers .name }}{{ end -}}
{{- range $watchers -}}
{{- $_ := set $files (printf "watcher-%s.conf" .) (include "headgate.rightsOf" (dict "root" $ "file" "watcher-local.conf" "name" .)) -}}
{{- end -}}
{{- range .Values.nats.leafNodes.clusters -}}
{{- $rights := include "headgate.rightsOf" (dict "root" $ "file" "edge-local.conf" "name" .) -}}
{{- $_ := set $files (printf "edge-%s.conf" .) ($rights | replace (printf "headgate.admission.%s.default" .) (printf "headgate.admission.%s.%s" . $.Values.table)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ toJson $files }}
{{- end }}

{{- define "headgate.natsTls" -}}
tls {
  cert_file: "/etc/nats-tls/tls.crt"
  key_file: "/etc/nats-tls/tls.key"
  ca_file: "/etc/nats-tls/ca.crt"
  verify: {{ . }}
  timeout: 5
}
{{- end }}

{{/* An account's users: a list of dicts of user, role (whose rights it has) and, of leaf nodes, isLeaf */}}
{{- define "headgate.natsLogins" -}}
users: [
  {{- range . }}
  { user: {{ .user }}, password: ${{ include "headgate.passwordVariable" .user }}, permissions: ${{ include "headgate.variable" .role }}_RIGHTS{{ if .isLeaf }}, allowed_connection_types: ["LEAFNODE"]{{ end }} }
  {{- end }}
]
{{- end }}

{{- define "headgate.natsConfig" -}}
{{- $name := printf "%s-nats" (include "headgate.name" .) -}}
{{- $tls := include "headgate.has" (dict "root" . "what" "tls") -}}
{{- $isLeaf := include "headgate.isLeaf" . -}}
{{- $logins := list -}}
{{- range ternary (list "gateway") (list "admin" "translator" "gateway" "reader" "operator") (not (empty $isLeaf)) }}{{ $logins = append $logins (dict "user" . "role" .) }}{{ end -}}
{{- range include "headgate.natsClusters" . | fromJsonArray }}{{ $logins = append $logins (dict "user" (printf "watcher-%s" .) "role" (printf "watcher-%s" .)) }}{{ end -}}
{{- range .Values.nats.leafNodes.clusters }}{{ $logins = append $logins (dict "user" (printf "edge-%s" .) "role" (printf "edge-%s" .) "isLeaf" true) }}{{ end -}}
# Not by --name: a reload looks for it here.
server_name: $SERVER_NAME
port: 4222
http_port: 8222
{{- if $tls }}

{{ include "headgate.natsTls" .Values.nats.tls.mutual }}
{{- end }}
{{- if $isLeaf }}

# A centre that is silent is taken for lost after 15 seconds, not after the servers' usual six minutes.
ping_interval: "5s"
ping_max: 2

leafnodes {
  reconnect: "1s"
  remotes: [
    {
      urls: $HUB_URLS
      account: HEADGATE
      # Only those: servers tell each other addresses that an edge may not reach.
      ignore_discovered_servers: true
      {{- if include "headgate.hubTls" . }}
      tls {
        cert_file: "/etc/nats-hub/tls.crt"
        key_file: "/etc/nats-hub/tls.key"
        ca_file: "/etc/nats-hub/ca.crt"
        timeout: 5
      }
      {{- end }}
    }
  ]
}
{{- else }}

jetstream {
  store_dir: "/data"
  # What was confirmed survives a power failure; Headgate writes tens of messages a second, not thousands.
  sync_interval: always
  # By which servers of edge clusters ask for it. For those who connect here it changes nothing.
  domain: hub
}
{{- end }}
{{- if include "headgate.natsIsClustered" . }}

cluster {
  name: {{ $name }}
  port: 6222
  routes: [
    {{- range $i := until (include "headgate.natsReplicas" . | int) }}
    "nats://{{ $name }}-{{ $i }}.{{ $name }}.{{ $.Release.Namespace }}.svc:6222"
    {{- end }}
  ]
  # Clients know the servers by the names in their settings; addresses of pods come and go.
  no_advertise: true
  {{- if $tls }}
  {{- include "headgate.natsTls" true | nindent 2 }}
  {{- end }}
}
{{- end }}
{{- if .Values.nats.leafNodes.clusters }}

# Servers of edge clusters.
leafnodes {
  port: 7422
  no_advertise: true
  # Edges have nothing to say to each other, and hear nothing of what others ask for.
  isolate_leafnode_interest: true
  {{- if $tls }}
  {{- include "headgate.natsTls" .Values.nats.tls.mutual | nindent 2 }}
  {{- end }}
}
{{- end }}
{{- if .Values.nats.auth.enabled }}
{{ range include "headgate.natsFiles" . | fromJson | keys | sortAlpha }}
include "{{ . }}"
{{- end }}

accounts {
  HEADGATE {
    {{- if $isLeaf }}
    # There is no JetStream here. Services ask for it as everywhere, and their requests go to the centre's, by its domain.
    mappings: {
      "$JS.API.>": "$JS.hub.API.>"
      "$KV.>": "$JS.hub.API.$KV.>"
    }
    {{- else }}
    jetstream: enabled
    {{- end }}
    {{- include "headgate.natsLogins" $logins | nindent 4 }}
  }
  {{- range $tenant := .Values.nats.tenants }}
  {{ include "headgate.variable" .name }} {
    # What the tenant may store, copies on other servers counted: its log cannot fill the disk for the others.
    jetstream: { max_file: {{ default "1G" .maxFile }} }
    {{- $logins = list (dict "user" (printf "watcher-%s" .name) "role" (printf "watcher-%s" .name)) }}
    {{- range list "translator" "gateway" "reader" "operator" "admin" }}{{ $logins = append $logins (dict "user" (printf "%s-%s" . $tenant.name) "role" .) }}{{ end }}
    {{- include "headgate.natsLogins" $logins | nindent 4 }}
  }
  {{- end }}
  SYS {
    users: [ { user: system, password: $SYSTEM_PASSWORD } ]
  }
}
system_account: SYS
{{- end }}
{{- end }}
