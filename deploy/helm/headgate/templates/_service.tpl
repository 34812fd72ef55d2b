{{/*
The pod of a service: root, component (watcher, translator, gateway, console), user (of NATS), settings, storeUser, and lists of further
env, ports, volumes and mounts; grace in seconds.
*/}}
{{- define "headgate.pod" -}}
{{- $root := .root -}}
{{- $values := get $root.Values .component -}}
{{- $tls := include "headgate.has" (dict "root" $root "what" "tls") -}}
{{- $settings := dict "admin_host" "0.0.0.0" "admin_port" 9080 "data_dir" "/var/lib/headgate" "grace_s" .grace "nats_url" (include "headgate.natsUrl" $root) -}}
{{- $env := .env -}}
{{- $volumes := concat (list (dict "name" "state" "emptyDir" (dict))) .volumes $values.extraVolumes -}}
{{- $mounts := concat (list (dict "name" "state" "mountPath" "/var/lib/headgate")) .mounts $values.extraVolumeMounts -}}
{{- $scope := dict "root" $root "component" .component -}}
{{- if $root.Values.nats.auth.enabled -}}
{{- $_ := set $settings "nats_user" .user -}}
{{- $env = append $env (dict "name" "HEADGATE_NATS_PASSWORD" "valueFrom" (dict "secretKeyRef" (dict "name" (include "headgate.natsSecret" $root) "key" (printf "%s-password" .user)))) -}}
{{- end -}}
{{- if $tls -}}
{{- $_ := set $settings "nats_ca_file" "/etc/headgate/nats/ca.crt" -}}
{{- $items := list (dict "key" "ca.crt" "path" "ca.crt") -}}
{{- if $root.Values.nats.tls.mutual -}}
{{- $_ := set $settings "nats_certificate_file" "/etc/headgate/nats/tls.crt" -}}
{{- $_ := set $settings "nats_key_file" "/etc/headgate/nats/tls.key" -}}
{{- $items = concat $items (list (dict "key" "tls.crt" "path" "tls.crt") (dict "key" "tls.key" "path" "tls.key")) -}}
{{- end -}}
{{- with $root.Values.nats.tls.serverName }}{{ $_ := set $settings "nats_server_name" . }}{{ end -}}
{{- $volumes = append $volumes (dict "name" "nats-tls" "secret" (dict "secretName" (include "headgate.natsClientSecret" $root) "items" $items "defaultMode" 288)) -}}
{{- $mounts = append $mounts (dict "name" "nats-tls" "mountPath" "/etc/headgate/nats" "readOnly" true) -}}
{{- end -}}
{{- if and .storeUser $root.Values.store.url -}}
{{- $store := $root.Values.store -}}
{{- $_ := set $settings "store" $store.url -}}
{{- if $store.existingSecret -}}
{{- $_ := set $settings "store_user" .storeUser -}}
{{- $env = append $env (dict "name" "HEADGATE_STORE_PASSWORD" "valueFrom" (dict "secretKeyRef" (dict "name" $store.existingSecret "key" (printf "%s-password" .storeUser)))) -}}
{{- if $store.sentinelUser -}}
{{- $_ := set $settings "store_sentinel_user" $store.sentinelUser -}}
{{- $env = append $env (dict "name" "HEADGATE_STORE_SENTINEL_PASSWORD" "valueFrom" (dict "secretKeyRef" (dict "name" $store.existingSecret "key" "sentinel-password"))) -}}
{{- end -}}
{{- end -}}
{{- if $store.tlsSecret -}}
{{- $_ := set $settings "store_ca_file" "/etc/headgate/store/ca.crt" -}}
{{- $items := list (dict "key" "ca.crt" "path" "ca.crt") -}}
{{- if $store.clientCertificate -}}
{{- $_ := set $settings "store_certificate_file" "/etc/headgate/store/tls.crt" -}}
{{- $_ := set $settings "store_key_file" "/etc/headgate/store/tls.key" -}}
{{- $items = concat $items (list (dict "key" "tls.crt" "path" "tls.crt") (dict "key" "tls.key" "path" "tls.key")) -}}
{{- end -}}
{{- $volumes = append $volumes (dict "name" "store-tls" "secret" (dict "secretName" $store.tlsSecret "items" $items "defaultMode" 288)) -}}
{{- $mounts = append $mounts (dict "name" "store-tls" "mountPath" "/etc/headgate/store" "readOnly" true) -}}
{{- end -}}
{{- end -}}
metadata:
  {{- include "headgate.podMetadata" . | nindent 2 }}
spec:
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  serviceAccountName: {{ .account }}
  automountServiceAccountToken: {{ eq .component "watcher" }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add .grace 5 }}
  securityContext: {{- include "headgate.over" (dict "base" (include "headgate.podSecurity" .) "over" $values.podSecurityContext) | nindent 4 }}
  {{- include "headgate.network" $scope | nindent 2 }}
  {{- include "headgate.placement" (dict "root" $root "component" .component "values" $values) | nindent 2 }}
  {{- with .spread }}
  topologySpreadConstraints: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "headgate.image" (dict "root" $root "image" .component) }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      env:
        {{- include "headgate.variables" (dict "root" $root "component" .component "settings" (mergeOverwrite $settings .settings)) | trim | nindent 8 }}
        {{- with concat $env $values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $values.extraEnvFrom }}
      envFrom: {{- toYaml . | nindent 8 }}
      {{- end }}
      ports: {{- toYaml (append .ports (dict "name" "admin" "containerPort" 9080)) | nindent 8 }}
      {{- $probes := dict "startupProbe" (dict "httpGet" (dict "path" "/healthz" "port" "admin") "periodSeconds" 2 "failureThreshold" 60) "livenessProbe" (dict "httpGet" (dict "path" "/healthz" "port" "admin") "periodSeconds" 10 "timeoutSeconds" 5 "failureThreshold" 6) "readinessProbe" (dict "httpGet" (dict "path" "/readyz" "port" "admin") "periodSeconds" 3 "timeoutSeconds" 3 "failureThreshold" 2) }}
      {{- range $name := list "startupProbe" "livenessProbe" "readinessProbe" }}
      {{ $name }}: {{- toYaml (mergeOverwrite (get $probes $name) (deepCopy (default dict (get $values.probes $name)))) | nindent 8 }}
      {{- end }}
      securityContext: {{- include "headgate.over" (dict "base" (include "headgate.containerSecurity" .) "over" $values.securityContext) | nindent 8 }}
      resources: {{- toYaml $values.resources | nindent 8 }}
      volumeMounts: {{- toYaml $mounts | nindent 8 }}
    {{- with $values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes: {{- toYaml $volumes | nindent 4 }}
{{- end }}
