{{- define "creole.selector" -}}
app.kubernetes.io/name: creole
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "creole.metadata" -}}
metadata:
  name: {{ .Release.Name }}
  namespace: {{ .Release.Namespace }}
  labels:
    {{- include "creole.selector" . | nindent 4 }}
    app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "creole.image" -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag }}
{{- end }}
{{- end }}
